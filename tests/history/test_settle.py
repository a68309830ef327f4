"""Chunks become segments once, however often the one who does it is interrupted."""

import errno
import os
import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ackworth.history import settle as settling
from ackworth.history.lines import Lines, path_of
from ackworth.history.schema import MARK, SENT
from ackworth.history.settle import convert_finished, settle
from ackworth.history.spool import Spool, chunks
from ackworth.model.errors import AckworthError
from tests.history.test_spool import append


def recorded(trial: Path) -> list[int]:
    files = sorted((trial / "record" / "sent").glob("p1-*.parquet"))
    return [seq for file in files for seq in pq.read_table(file)["seq"].to_pylist()]


def spooled(trial: Path, rows: int) -> None:
    append(Spool(trial / "spool", SENT, "p1", rows_per_chunk=4), 0, rows)


def test_all_that_is_left_becomes_segments(tmp_path: Path) -> None:
    spooled(tmp_path, 100)
    settle(tmp_path)
    assert recorded(tmp_path) == list(range(100))
    assert list(chunks(tmp_path / "spool", SENT)) == []
    settle(tmp_path)
    assert recorded(tmp_path) == list(range(100))


def test_the_chunk_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    spooled(tmp_path, 4 * 16)
    assert not convert_finished(tmp_path)
    spooled(tmp_path, 1)
    assert convert_finished(tmp_path)
    assert recorded(tmp_path) == list(range(64))
    assert len(list(chunks(tmp_path / "spool", SENT))) == 1


def test_two_who_settle_at_the_same_time_do_it_once(tmp_path: Path) -> None:
    spooled(tmp_path, 100)
    other = threading.Thread(target=settle, args=[tmp_path])

    def meanwhile(line: str) -> None:
        if other.ident is None:
            other.start()
            other.join(0.3)  # it would be done by then, if it did not have to wait

    settle(tmp_path, meanwhile)
    other.join()
    assert recorded(tmp_path) == list(range(100))
    assert not (tmp_path / "spool").exists()


def test_a_chunk_that_its_writer_was_killed_over_is_not_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path / "spool", SENT, "p1", rows_per_chunk=4)
    append(spool, 0, 4)

    def killed(path: Path, name: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            append(spool, 4, 1)
    settle(tmp_path)
    assert recorded(tmp_path) == list(range(4))
    assert not (tmp_path / "spool").exists()


@pytest.mark.parametrize("step", ["_next_segment", "SegmentWriter", "_discard"])
def test_a_crash_neither_loses_nor_doubles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    spooled(tmp_path, 100)

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(settling, step, crash)
        with pytest.raises(KeyboardInterrupt):
            settle(tmp_path)
    settle(tmp_path)
    assert recorded(tmp_path) == list(range(100))


def test_a_full_disk_leaves_the_events_in_the_spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spooled(tmp_path, 100)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(settling, "SegmentWriter", full)
        with pytest.raises(AckworthError, match=r"No space left on device.*safe in the spool: free some space"):
            settle(tmp_path)
    settle(tmp_path)
    assert recorded(tmp_path) == list(range(100))


def test_a_line_that_was_cut_off_is_no_line(tmp_path: Path) -> None:
    lines = Lines(tmp_path / "spool", MARK)
    for name in ("a", "b"):
        lines.append(what="note", name=name, node="", t_begin=1, t_end=2, detail="{}")
    lines.close()
    file = path_of(tmp_path / "spool", MARK)
    file.write_text(file.read_text() + '{"what": "no')
    settle(tmp_path)
    assert pq.read_table(tmp_path / "record" / "mark")["name"].to_pylist() == ["a", "b"]
    assert not file.exists()

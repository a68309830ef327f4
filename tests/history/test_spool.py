"""What is appended to a spool is there, whole, whatever becomes of the writer."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ackworth.history.schema import SENT
from ackworth.history.spool import Spool, chunks, read_chunk
from ackworth.model.errors import BadRecord


def append(spool: Spool, first: int, count: int) -> None:
    seqs = np.arange(first, first + count)
    spool.append(count, producer=1, topic=seqs % 5, seq=seqs, t=seqs * 10, late=0)


def seqs_in(directory: Path) -> list[int]:
    return [int(seq) for _, _, path in chunks(directory, SENT) for seq in read_chunk(path, SENT)["seq"]]


def test_rows_come_back_in_order_across_chunks(tmp_path: Path) -> None:
    spool = Spool(tmp_path, SENT, "p1", rows_per_chunk=8)
    append(spool, 0, 5)
    append(spool, 5, 20)
    assert seqs_in(tmp_path) == list(range(25))
    rows = read_chunk(next(chunks(tmp_path, SENT))[2], SENT)
    assert rows["producer"].tolist() == [1] * 8 and rows["topic"].tolist() == [0, 1, 2, 3, 4, 0, 1, 2]
    assert rows["t"].tolist() == [i * 10 for i in range(8)]


def test_a_second_writer_goes_on_in_a_new_chunk(tmp_path: Path) -> None:
    append(Spool(tmp_path, SENT, "p1"), 0, 3)
    append(Spool(tmp_path, SENT, "p1"), 3, 3)
    assert [number for _, number, _ in chunks(tmp_path, SENT)] == [0, 1]
    assert seqs_in(tmp_path) == list(range(6))


def test_rows_survive_a_killed_writer(tmp_path: Path) -> None:
    code = f"""
import os, signal, sys
from pathlib import Path
from tests.history.test_spool import append
from ackworth.history.schema import SENT
from ackworth.history.spool import Spool
append(Spool(Path({str(tmp_path)!r}), SENT, "p1"), 0, 1234)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == -signal.SIGKILL
    assert seqs_in(tmp_path) == list(range(1234))


def test_a_full_disk_is_an_error_and_not_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        Spool(tmp_path, SENT, "p1")
    assert list(chunks(tmp_path, SENT)) == []


@pytest.mark.parametrize("damage", [b"", b"hello", b"\0" * 5000])
def test_damage_is_named(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "p1-000000.chunk"
    path.write_bytes(damage)
    with pytest.raises(BadRecord, match=r"p1-000000\.chunk: not a chunk"):
        read_chunk(path, SENT)


def test_a_cut_chunk_is_named(tmp_path: Path) -> None:
    append(Spool(tmp_path, SENT, "p1"), 0, 3)
    path = next(chunks(tmp_path, SENT))[2]
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(BadRecord, match="bytes where"):
        read_chunk(path, SENT)

"""Opening a record: what is in it, and one clear line for whatever is wrong with it."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ackworth.history.reader import open_record
from ackworth.model.errors import BadRecord
from ackworth.model.outcome import Outcome
from ackworth.testing.histories import Answer, Delivered, History, Sent, trial, write_history


@pytest.fixture
def record(tmp_path: Path) -> Path:
    history = History(
        trial=trial(producers=2),
        sent=[Sent(producer, seq, 10 * seq) for producer in range(2) for seq in range(5)],
        outcome=[Answer(0, seq, Outcome.ACKED, 100 + seq) for seq in range(5)],
        delivered=[Delivered(0, seq, 200 + seq) for seq in range(5)],
    )
    return write_history(tmp_path / "trial", history, rows_per_group=2, rows_per_segment=4)


def refused(record: Path) -> str:
    with pytest.raises(BadRecord) as raised:
        open_record(record)
    message = str(raised.value)
    assert "\n" not in message
    return message


def test_what_is_in_a_record(record: Path) -> None:
    found = open_record(record)
    assert found.trial.name == "trial"
    assert found.end is not None
    assert [(g.series, g.number, g.index, g.rows, g.bounds["seq"]) for g in found.of("sent")] == [
        (series, number, index, rows, bounds)
        for series in ("00000", "00001")
        for number, index, rows, bounds in ((0, 0, 2, (0, 1)), (0, 1, 2, (2, 3)), (1, 0, 1, (4, 4)))
    ]
    assert found.of("sent")[-1].constant("producer") == 1
    assert found.of("sent")[0].constant("seq") is None


def test_a_record_by_uri(record: Path) -> None:
    assert open_record(record.as_uri()).trial == open_record(record).trial


def test_a_relative_path_means_the_same_elsewhere(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(record.parent)
    assert open_record("trial").groups[0].path.startswith(str(record))


def test_a_killed_run_has_no_end(record: Path) -> None:
    (record / "end.json").unlink()
    assert open_record(record).end is None


def test_not_a_trial(tmp_path: Path) -> None:
    assert refused(tmp_path) == (
        f"{tmp_path}: no trial.json in it: name the directory of a trial that `ackworth run` made"
    )


def test_no_such_place(tmp_path: Path) -> None:
    with pytest.raises(BadRecord, match="no such place"):
        open_record("nowhere://here")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"version": 99}'])
def test_a_damaged_trial(record: Path, text: str) -> None:
    (record / "trial.json").write_text(text)
    assert refused(record).startswith(f"{record}/trial.json: ")


def test_a_truncated_segment(record: Path) -> None:
    path = record / "record/sent/00000-000000.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    assert re.match(rf"{path}: not a readable segment \(.+\): restore the file, or run the plan again", refused(record))


def test_an_empty_segment(record: Path) -> None:
    path = record / "record/sent/00000-000000.parquet"
    path.write_bytes(b"")
    assert refused(record).startswith(f"{path}: not a readable segment")


def test_a_foreign_segment(record: Path) -> None:
    path = record / "record/sent/00000-000000.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    assert refused(record) == f"{path}: not a segment of table 'sent' of this record version: move it away"


def test_a_segment_of_another_table(record: Path) -> None:
    path = record / "record/sent/00000-000000.parquet"
    path.write_bytes((record / "record/outcome/00000-000000.parquet").read_bytes())
    assert "not a segment of table 'sent'" in refused(record)


def test_a_missing_segment(record: Path) -> None:
    path = record / "record/sent/00000-000000.parquet"
    path.unlink()
    assert refused(record) == f"{path}: missing, later ones are there: restore it"


def test_a_file_that_does_not_belong(record: Path) -> None:
    path = record / "record/sent/notes.txt"
    path.write_text("hello")
    assert refused(record) == f"{path}: not a segment of a record: move it away"


def test_a_file_in_the_place_of_a_table(record: Path) -> None:
    (record / "record" / "sample").write_text("")
    assert "record/sample: cannot be listed" in refused(record)


def test_what_is_being_written_is_left_alone(record: Path) -> None:
    (record / "record/sent/.00000-000002.parquet").write_text("half")
    assert len(open_record(record).of("sent")) == 6

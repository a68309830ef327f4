"""Records that open and cannot be judged: one clear line, never a verdict."""

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ackworth.history.meta import End
from ackworth.history.reader import open_record
from ackworth.model.errors import BadRecord
from ackworth.model.outcome import Outcome
from ackworth.pipeline.session import Session
from ackworth.pipeline.trial import judge_trial
from ackworth.testing.engine import Inline
from ackworth.testing.histories import Answer, Delivered, History, Mark, Sent, trial, write_history


def history() -> History:
    return History(
        trial=trial(),
        sent=[Sent(0, seq, 10 * seq) for seq in range(2000)],
        outcome=[Answer(0, seq, Outcome.ACKED, 10 * seq + 5) for seq in range(2000)],
        delivered=[Delivered(0, seq, 10 * seq + 7) for seq in range(2000)],
    )


def refused(tmp_path: Path, damaged: History) -> str:
    with pytest.raises(BadRecord) as raised:
        judge_trial(write_history(tmp_path, damaged), Inline())
    message = str(raised.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (2001, "2,000 rows of 2,001: restore what is missing"),
        (1999, "2,000 rows, 1,999 were written: take away the rest"),
    ],
)
def test_rows_that_are_too_few_or_too_many(tmp_path: Path, rows: int, said: str) -> None:
    assert said in refused(tmp_path / "whole", replace(history(), end=End(t=1, drained=True, rows={"delivered": rows})))


def test_a_run_with_a_problem_may_have_written_more_than_it_counted(tmp_path: Path) -> None:
    end = End(t=1, drained=True, rows={"delivered": 1}, problems=("it was interrupted",))
    result = judge_trial(write_history(tmp_path, replace(history(), end=end)), Inline())
    assert result["verdict"] == "unknown"


def damage_a_page(record: Path) -> Path:
    path = record / "record/delivered/00000-000000.parquet"
    columns = pq.read_metadata(path).row_group(0)
    seq = next(c for c in map(columns.column, range(columns.num_columns)) if c.path_in_schema == "seq")
    content = bytearray(path.read_bytes())
    content[seq.data_page_offset + seq.total_compressed_size - 5] ^= 0x40
    path.write_bytes(content)
    open_record(record)  # the footer is whole
    return path


def test_a_damaged_page(tmp_path: Path) -> None:
    write_history(tmp_path, history())
    path = damage_a_page(tmp_path)
    with pytest.raises(BadRecord, match=f"{path}: not a readable segment"):
        judge_trial(tmp_path, Inline())


@pytest.mark.spark
def test_a_damaged_page_found_by_a_worker(tmp_path: Path, spark: Session) -> None:
    write_history(tmp_path, history())
    path = damage_a_page(tmp_path)
    with pytest.raises(BadRecord, match=f"{path}: not a readable segment"):
        judge_trial(tmp_path, spark)


@pytest.mark.parametrize(
    ("damaged", "said"),
    [
        (replace(history(), sent=[Sent(3, 0, 1)]), "sent/00003-000000.parquet: producer 3, the trial has 0 to 0"),
        (replace(history(), sent=[Sent(0, -1, 1)]), "sent/00000-000000.parquet: seq -1: the record is damaged"),
        (replace(history(), delivered=[Delivered(0, 0, 1, group=1)]), "group 1, the trial has 0 to 0"),
        (replace(history(), delivered=[Delivered(0, 0, 1, topic=9)]), "topic 9, the trial has 0 to 0"),
        (replace(history(), outcome=[Answer(0, 0, 7, 1)]), "outcome 7, the trial has 1 to 3"),  # type: ignore[arg-type]
        (replace(history(), outcome=[Answer(0, 0, Outcome.ACKED, 2**60)]), f"t {2**60}, the trial has 0 to"),
        (replace(history(), sent=[Sent(0, 2**40, 1)]), f"1 messages were sent, but seqs reach {2**40}"),
        (replace(history(), mark=[Mark("fault", "kill", 1, 2, detail="{")]), "mark 'kill': its detail is not JSON"),
    ],
)
def test_events_that_do_not_fit_the_trial(tmp_path: Path, damaged: History, said: str) -> None:
    assert said in refused(tmp_path, damaged)

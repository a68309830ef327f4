"""A record made ready for judging: checked against its trial, its ids counted, its marks read."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ackworth.history.meta import Trial
from ackworth.history.reader import Record, RowGroup, read_table
from ackworth.history.schema import MARK
from ackworth.model.clock import SECOND
from ackworth.model.errors import BadRecord
from ackworth.model.outcome import Outcome
from ackworth.pipeline.context import Context, Mark
from ackworth.pipeline.ids import Ids
from ackworth.pipeline.rows import read_rows

# Seqs are dense: a producer whose last seq is far beyond the number of its messages is a damaged record.
_SLACK = 1 << 20

# A time further away than this from the beginning is a damaged record, not a long trial.
_LONGEST = 400 * 24 * 3600 * SECOND


def prepare(record: Record) -> Context:
    """What every task must know. Raises BadRecord if the events do not fit the trial."""
    _check_whole(record)
    for group in record.groups:
        _check_bounds(group, record.trial)
    return Context(record.trial, tuple(_marks(record.of("mark"))), _ids(record))


def _check_whole(record: Record) -> None:
    for table, rows in (record.end.rows if record.end else {}).items():
        found = sum(group.rows for group in record.of(table))
        if found < rows:
            raise BadRecord(f"{record.where}/record/{table}: {found:,} rows of {rows:,}: restore what is missing")
        # Where the run had a problem, it may not have counted all.
        if found > rows and record.end and not record.end.problems:
            raise BadRecord(f"{record.where}/record/{table}: {found:,} rows, {rows:,} were written: take away the rest")


def _check_bounds(group: RowGroup, trial: Trial) -> None:
    limits = {
        "producer": (0, trial.producers - 1),
        "consumer": (0, trial.consumers - 1),
        "group": (0, len(trial.groups) - 1),
        "topic": (0, len(trial.topics) - 1),
        "outcome": (min(Outcome), max(Outcome)),
        "reason": (0, len(trial.reasons) - 1),
        "t": (trial.t_zero, trial.t_zero + _LONGEST),
    }
    if group.table == "sample":
        del limits["t"]  # may be from before the beginning
    if group.table == "delivered":
        del limits["producer"]  # what a body claims, which may be anything
    for column, (low, high) in limits.items():
        lowest, highest = group.bounds.get(column, (low, high))
        if lowest < low or highest > high:
            wrong = lowest if lowest < low else highest
            raise BadRecord(f"{group.path}: {column} {wrong}, the trial has {low} to {high}: the record is damaged")


def _ids(record: Record) -> Ids:
    counts = np.zeros(record.trial.producers, np.int64)
    rows = 0
    for group in record.of("sent"):
        rows += group.rows
        if group.bounds["seq"][0] < 0:
            raise BadRecord(f"{group.path}: seq {group.bounds['seq'][0]}: the record is damaged, run the plan again")
        producer = group.constant("producer")
        if producer is not None:
            counts[producer] = max(counts[producer], group.bounds["seq"][1] + 1)
        else:
            for chunk in read_rows(Context(record.trial, (), Ids(())), group, ("producer", "seq")):
                np.maximum.at(counts, chunk["producer"], chunk["seq"] + 1)
    if counts.sum() > 2 * rows + _SLACK:
        raise BadRecord(
            f"{record.where}: {rows} messages were sent, but seqs reach {counts.max() - 1}: the record is damaged"
        )
    return Ids(tuple(counts.tolist()))


def _marks(groups: Sequence[RowGroup]) -> Iterator[Mark]:
    rows = [row for group in groups for row in read_table(group, MARK.names)]
    for row in sorted(rows, key=lambda row: (row["t_begin"], row["t_end"])):
        yield Mark(**{**row, "detail": _detail(row)})


def _detail(row: dict[str, Any]) -> dict[str, Any]:
    try:
        detail: dict[str, Any] = json.loads(row["detail"] or "{}")
    except ValueError as error:
        raise BadRecord(f"mark '{row['name']}': its detail is not JSON ({error}): the record is damaged") from error
    return detail

"""Records made by hand: a history of a few events, written as a run would have written it.

Times are whatever the test finds readable, as long as they rise; the trial begins at 0.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ackworth.history.meta import End, Group, Trial, write_end, write_trial
from ackworth.history.schema import DELIVERED, MARK, OUTCOME, ROWS_PER_GROUP, ROWS_PER_SEGMENT, SAMPLE, SENT, Table
from ackworth.history.segment import SegmentWriter
from ackworth.model.outcome import Delivery, Outcome
from ackworth.model.verdict import Claims

INTACT = Delivery.INTACT
REDELIVERED = Delivery.INTACT | Delivery.REDELIVERED


@dataclass(frozen=True)
class Sent:
    producer: int
    seq: int
    t: int
    topic: int = 0
    late: int = 0


@dataclass(frozen=True)
class Answer:
    producer: int
    seq: int
    outcome: Outcome
    t: int
    latency: int = 0
    late: int = 0
    reason: int = 0


@dataclass(frozen=True)
class Delivered:
    producer: int
    seq: int
    t: int
    latency: int = 0
    topic: int = 0
    group: int = 0
    consumer: int = 0
    flags: int = INTACT
    position: int = -1


@dataclass(frozen=True)
class Mark:
    what: str
    name: str
    t_begin: int
    t_end: int
    node: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Sample:
    who: str
    t: int
    cpu: int = 0
    rss: int = 0
    read: int = 0
    written: int = 0
    busy: int = 0
    backlog: int = -1


DRAINED = End(t=0, drained=True)


@dataclass(frozen=True, kw_only=True)
class History:
    """All that a record holds. Rows of a table are in the order of their series."""

    trial: Trial
    end: End | None = DRAINED
    sent: Sequence[Sent] = ()
    outcome: Sequence[Answer] = ()
    delivered: Sequence[Delivered] = ()
    mark: Sequence[Mark] = ()
    sample: Sequence[Sample] = ()


def trial(
    *,
    producers: int = 1,
    consumers: int = 1,
    topics: int = 1,
    groups: Sequence[tuple[str, Sequence[int] | None]] = (("all", None),),
    survives: Iterable[str] = ("kill",),
    survives_in_part: Iterable[str] = (),
    ordered: bool = True,
    ordered_alone: bool = False,
    once: bool = True,
    plan: dict[str, Any] | None = None,
) -> Trial:
    return Trial(
        run="00000000000000ab",
        name="trial",
        plan=plan or {},
        topics=tuple(f"topic-{number}" for number in range(topics)),
        groups=tuple(Group(name=name, topics=None if t is None else tuple(t)) for name, t in groups),
        producers=producers,
        consumers=consumers,
        reasons=("", "full", "timeout"),
        claims=Claims(
            survives=frozenset(survives),
            ordered=ordered,
            ordered_alone=ordered_alone,
            once=once,
            source="the test",
            survives_in_part=frozenset(survives_in_part),
        ),
        seed=1,
        t_zero=0,
        wall_zero="2024-01-01T00:00:00+00:00",
        broker={"kind": "test"},
    )


def write_history(
    directory: Path,
    history: History,
    *,
    rows_per_group: int = ROWS_PER_GROUP,
    rows_per_segment: int = ROWS_PER_SEGMENT,
) -> Path:
    """Write the record; small row groups make many seams."""
    directory.mkdir(parents=True, exist_ok=True)
    write_trial(directory, history.trial)
    if history.end is not None:
        write_end(directory, history.end)
    series = {SENT: "producer", OUTCOME: "producer", DELIVERED: "consumer", MARK: None, SAMPLE: None}
    for table, named_after in series.items():
        rows = getattr(history, table.name)
        for name in sorted({0 if named_after is None else getattr(row, named_after) for row in rows}):
            some = [row for row in rows if named_after is None or getattr(row, named_after) == name]
            sizes = {"rows_per_group": rows_per_group, "rows_per_segment": rows_per_segment}
            with SegmentWriter(directory / "record", table, f"{name:05d}", **sizes) as writer:
                writer.write(columns_of(table, some))
    return directory


def columns_of(table: Table, rows: Sequence[Any]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for column in table.columns:
        values = [getattr(row, column.name) for row in rows]
        columns[column.name] = values if column.type == "string" else np.array(values, column.type)
    return columns

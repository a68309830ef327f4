"""The record of a trial, declared once.

A trial is one directory:

    trial.json                 what was run: see `meta.Trial`
    record/<table>/<series>-<n>.parquet   segments; complete once they have this name
    spool/<table>/<series>-<n>.chunk      events that are not in a segment yet
    logs/                      what workers and brokers printed

One series is written by one process at a time, in the order of the events, so that within a series
of `sent` the seqs rise, and within a series of any table the times rise. The series of `sent` and
`outcome` are named after the producer, those of `delivered` after the consumer.

Times are int64 nanoseconds of the host's monotonic clock. A latency stands beside its time instead
of a second time, because small numbers pack better. Identity is (producer, seq); seq is dense per
producer, from 0.
"""

from dataclasses import dataclass
from typing import Any

VERSION = 1

# Rows of a Parquet row group, of a segment, and of a chunk of the spool. A row group is the unit of
# work of the pipeline; a chunk is what a killed worker leaves behind at most half filled.
ROWS_PER_GROUP = 1 << 18
ROWS_PER_SEGMENT = 1 << 22
ROWS_PER_CHUNK = 1 << 18


@dataclass(frozen=True)
class Column:
    name: str
    type: str  # int8, int16, int64 or string
    packed: bool  # True: DELTA_BINARY_PACKED; False: dictionary
    means: str


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[Column, ...]

    @property
    def arrow(self) -> Any:
        """The schema for pyarrow, which a worker that only spools events need not load."""
        import pyarrow as pa

        metadata = {"ackworth.table": self.name, "ackworth.version": str(VERSION)}
        return pa.schema(
            [pa.field(c.name, getattr(pa, c.type)(), nullable=False) for c in self.columns], metadata=metadata
        )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)


def _id(name: str, means: str) -> Column:
    return Column(name, "int16", False, means)


def _number(name: str, means: str) -> Column:
    return Column(name, "int64", True, means)


SENT = Table(
    "sent",
    (
        _id("producer", "who sent it"),
        _id("topic", "index of the topic"),
        _number("seq", "the producer's count of its messages, dense from 0"),
        _number("t", "when it was handed to the driver"),
        _number("late", "t minus the time when the schedule wanted it; 0 in a closed loop"),
    ),
)

OUTCOME = Table(
    "outcome",
    (
        _id("producer", "who sent it"),
        _number("seq", "which of its messages"),
        Column("outcome", "int8", False, "model.Outcome: 1 acked, 2 refused, 3 unknown"),
        _number("t", "when the answer came"),
        _number("latency", "t minus the time of sending"),
        _number("late", "the time of sending minus the time when the schedule wanted it"),
        _id("reason", "index into the trial's reasons; 0 is none"),
    ),
)

DELIVERED = Table(
    "delivered",
    (
        _id("consumer", "who got it"),
        _id("group", "index of the consumer's group"),
        _id("producer", "from the body; -1 if the body is not one of ours"),
        _id("topic", "the topic that it came from"),
        _number("seq", "from the body; -1 if the body is not one of ours"),
        _number("t", "when it was received"),
        _number("latency", "t minus the time of sending, from the body"),
        Column("flags", "int8", False, "model.Delivery bits: intact, redelivered, foreign, misdelivered"),
        _number("position", "the broker's own place of the message in its topic; -1 if it has none"),
    ),
)

MARK = Table(
    "mark",
    (
        Column("what", "string", False, "'fault', 'phase', 'refused' (to start), 'repaired', 'ready', 'worker-died'"),
        Column("name", "string", False, "which fault (also of what followed it), which phase, which worker"),
        Column("node", "string", False, "the node it happened to; empty if none"),
        _number("t_begin", "when it began; of 'ready', when the node was let go or started again"),
        _number("t_end", "when it was over; of a fault, when the strike was complete; of 'ready', when it answered"),
        Column("detail", "string", False, "JSON, what else is to be said; of a phase, whether it was a warm-up"),
    ),
)

SAMPLE = Table(
    "sample",
    (
        Column("who", "string", False, "'node:<name>', 'worker:<name>', 'scribe', 'host', 'disk'"),
        _number("t", "when"),
        _number("cpu", "nanoseconds of CPU used so far"),
        _number("rss", "bytes of memory"),
        _number("read", "bytes read from disk so far"),
        _number("written", "bytes written to disk so far"),
        _number("busy", "nanoseconds that the disk was busy so far; 0 for processes"),
        _number("backlog", "messages stored and not consumed; -1 if not known"),
    ),
)

# The tables whose rows are one event of one message.
EVENTS = (SENT, OUTCOME, DELIVERED)
TABLES = {table.name: table for table in (*EVENTS, MARK, SAMPLE)}

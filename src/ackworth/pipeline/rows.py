"""Rows of one row group as numpy columns: what measurements fold.

A column that is the same in all rows of its row group (its bounds say so) is never read. What is
derived (places, seconds, a selection of rows and its columns) is derived when it is asked for, once
for all measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ackworth.history.reader import RowGroup, open_segment, unreadable
from ackworth.model.clock import SECOND
from ackworth.model.outcome import Delivery, Outcome
from ackworth.pipeline.by_stream import ByStream, by_stream
from ackworth.pipeline.context import Context
from ackworth.pipeline.histogram import Counted
from ackworth.pipeline.ids import NOWHERE, Int64s, Mask
from ackworth.pipeline.seen import CHUNK

# Rows that are decoded at a time, and then folded in chunks: decoding has a cost a time, folding wants the cache.
_READ = 1 << 16

Column = npt.NDArray[Any] | int  # an int is the value of all rows

_OURS = Delivery.INTACT | Delivery.FOREIGN  # an intact body of this run has the first flag and not the second


class Rows:
    """Some rows of one row group."""

    def __init__(self, context: Context, group: RowGroup, columns: Mapping[str, Column], count: int) -> None:
        self.context = context
        self.group = group
        self._columns = columns
        self._count = count
        self._parts: dict[Any, Rows | None] = {}  # None is itself: rows that held themselves would outlive their chunk

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, column: str) -> npt.NDArray[Any]:
        values = self._columns[column]
        return np.full(self._count, values) if isinstance(values, int) else values

    def constant(self, column: str) -> int | None:
        values = self._columns[column]
        return values if isinstance(values, int) else None

    def where(self, mask: Mask) -> Rows:
        """The rows that the mask selects; itself if it selects all."""
        count = int(np.count_nonzero(mask))
        return self if count == self._count else self._take(np.flatnonzero(mask), count)

    def _take(self, chosen: Int64s, count: int) -> Rows:
        return Rows(self.context, self.group, _Selected(self._columns, chosen), count)

    def _part(self, what: Any, choose: Callable[[], Rows]) -> Rows:
        """Some of the rows, chosen once."""
        if what not in self._parts:
            chosen = choose()
            self._parts[what] = None if chosen is self else chosen
        part = self._parts[what]
        return self if part is None else part

    def equal(self, column: str, value: int) -> Rows:
        """The rows in which a column has one value."""
        return self._part((column, value), lambda: self.where(self[column] == value))

    def by(self, column: str) -> Iterator[tuple[int, Rows]]:
        """The rows for each value of a column."""
        constant = self.constant(column)
        if constant is not None:
            yield constant, self
        else:
            for value in np.unique(self[column]).tolist():
                yield value, self.equal(column, value)

    def by_reader(self) -> Iterator[tuple[int, int, Rows]]:
        """Deliveries for each consumer and its group."""
        for consumer, rows in self.by("consumer"):
            for group, part in rows.by("group"):
                yield consumer, group, part

    @cached_property
    def places(self) -> Int64s:
        producer = self.constant("producer")
        ids = self.context.ids
        return ids.places(self["producer"] if producer is None else producer, self["seq"], self._all_placed)

    @cached_property
    def per_second(self) -> Counted:
        """The seconds of the trial, from the first row's to the last row's, and how many rows happened in each."""
        times, zero = self.in_time["t"], self.context.trial.t_zero
        seconds = np.arange((times[0] - zero) // SECOND, (times[-1] - zero) // SECOND + 1)
        begun = np.searchsorted(times, seconds * SECOND + zero)
        begun[:-1] -= begun[1:]
        begun[-1] -= len(times)
        return Counted(seconds, -begun)

    @property
    def in_time(self) -> Rows:
        """The rows in the order of their times; itself if they are."""
        return self._part("in time", self._sorted_by_time)

    def _sorted_by_time(self) -> Rows:
        times = self["t"]
        if (times[1:] >= times[:-1]).all():
            return self
        return self._take(np.argsort(times, kind="stable"), len(times))

    @property
    def warm(self) -> Rows:
        """The rows of messages that were sent after the warm-up. Needs `t`, and `latency` where there is one."""
        if not self.context.warms_up:
            return self
        return self._part("warm", lambda: self.where(self._sent_at() >= self.context.warm_at))

    def _sent_at(self) -> Int64s:
        times: Int64s = self["t"] if self.group.table == "sent" else self["t"] - self["latency"]
        return times

    @property
    def placed(self) -> Rows:
        """The rows whose id may have been sent."""
        return self if self._all_placed else self._part("placed", lambda: self.where(self.places != NOWHERE))

    @cached_property
    def _all_placed(self) -> bool:
        return self.context.ids.cover(self.group.bounds["producer"], self.group.bounds["seq"])

    @cached_property
    def by_stream(self) -> ByStream:
        """Deliveries of one consumer, whose ids have places, sorted by stream."""
        return by_stream(self["producer"], self["topic"], self["seq"], len(self.context.trial.topics))

    @cached_property
    def rising(self) -> bool:
        return self.by_stream.rising()

    @property
    def places_by_stream(self) -> Int64s:
        """So sorted, places that lie close together stand close together."""
        found = self.by_stream
        return found.spread(self.context.ids.starts[found.producers]) + found.seqs

    @property
    def copies(self) -> int:
        """How often one id can be among these deliveries: in streams that rise, once for each topic."""
        return self.by_stream.most_topics if self.rising else len(self)

    @property
    def acked(self) -> Rows:
        return self if self.constant("outcome") == Outcome.ACKED else self.equal("outcome", Outcome.ACKED)

    @cached_property
    def ordinary(self) -> bool:
        """Every delivery is intact, and there is nothing else to say of it."""
        flags = self.constant("flags")
        return flags == Delivery.INTACT if flags is not None else bool((self["flags"] == Delivery.INTACT).all())

    @property
    def intact(self) -> Rows:
        """Deliveries of bodies of this run, every byte as it was sent."""
        if self.ordinary:
            return self
        return self._part("intact", lambda: self.where((self["flags"] & _OURS) == Delivery.INTACT))

    def flagged(self, flag: Delivery) -> Mask:
        return (self["flags"] & flag) != 0  # type: ignore[no-any-return]


class _Selected(Mapping[str, Column]):
    """Columns of chosen rows, each cut out when it is asked for."""

    def __init__(self, columns: Mapping[str, Column], chosen: Int64s) -> None:
        self._all = columns
        self._chosen = chosen
        self._cut: dict[str, Column] = {}

    def __getitem__(self, name: str) -> Column:
        if name not in self._cut:
            values = self._all[name]
            self._cut[name] = values if isinstance(values, int) else values[self._chosen]
        return self._cut[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


def read_rows(context: Context, group: RowGroup, columns: Sequence[str]) -> Iterator[Rows]:
    """The row group in chunks that fit into the processor's cache."""
    constant: dict[str, Column] = {}
    for name in columns:
        value = group.constant(name) if name in group.bounds else None
        if value is not None:
            constant[name] = value
    rest = [name for name in columns if name not in constant]
    if not rest:
        for start in range(0, group.rows, CHUNK):
            yield Rows(context, group, constant, min(CHUNK, group.rows - start))
        return
    try:
        with open_segment(group.path) as file:
            for batch in file.iter_batches(_READ, row_groups=[group.index], columns=rest, use_threads=False):
                read = {name: _values(batch.column(name)) for name in rest}
                for start in range(0, batch.num_rows, CHUNK):
                    chunk = {name: values[start : start + CHUNK] for name, values in read.items()}
                    yield Rows(context, group, {**constant, **chunk}, min(CHUNK, batch.num_rows - start))
    except (pa.ArrowException, OSError) as error:
        raise unreadable(group.path, error) from error


def _values(array: pa.Array) -> npt.NDArray[Any]:
    if pa.types.is_string(array.type):
        return np.array(array.to_pylist(), object)
    kind = np.dtype(str(array.type))
    # Array.to_numpy() would import pandas, which takes seconds.
    return np.frombuffer(array.buffers()[1], kind, len(array), array.offset * kind.itemsize)

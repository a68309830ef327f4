"""Rows of one row group as numpy columns: what measurements fold.

A column that is the same in all rows of its row group (its bounds say so) is never read. What is
derived from columns (places, seconds, the rows that are ours) is derived once for all measurements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ackworth.history.reader import RowGroup, open_segment, unreadable
from ackworth.model.clock import SECOND
from ackworth.model.outcome import Delivery, Outcome
from ackworth.pipeline.context import Context
from ackworth.pipeline.ids import NOWHERE, Int64s
from ackworth.pipeline.seen import CHUNK

Mask = npt.NDArray[np.bool_]


class Rows:
    """Some rows of one row group. A constant column is an int, until its array is asked for."""

    def __init__(
        self, context: Context, group: RowGroup, columns: Mapping[str, npt.NDArray[Any] | int], count: int
    ) -> None:
        self.context = context
        self.group = group
        self._columns = columns
        self._count = count

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
        if mask.all():
            return self
        return self._take(mask, int(np.count_nonzero(mask)))

    def _take(self, chosen: Mask | Int64s, count: int) -> Rows:
        columns = {name: v if isinstance(v, int) else v[chosen] for name, v in self._columns.items()}
        return Rows(self.context, self.group, columns, count)

    def equal(self, column: str, value: int) -> Rows:
        """The rows in which a column has one value."""
        constant = self.constant(column)
        if constant is None:
            return self.where(self[column] == value)
        return self if constant == value else self.where(np.zeros(self._count, np.bool_))

    def by(self, column: str) -> Iterator[tuple[int, Rows]]:
        """The rows for each value of a column."""
        constant = self.constant(column)
        values = [constant] if constant is not None else np.unique(self[column]).tolist()
        for value in values:
            yield value, self.equal(column, value)

    def by_reader(self) -> Iterator[tuple[int, int, Rows]]:
        """Deliveries for each consumer and its group."""
        for consumer, rows in self.by("consumer"):
            for group, part in rows.by("group"):
                yield consumer, group, part

    def flagged(self, flag: Delivery) -> Mask:
        return (self["flags"] & flag) != 0

    @cached_property
    def places(self) -> Int64s:
        producer = self.constant("producer")
        return self.context.ids.places(self["producer"] if producer is None else producer, self["seq"])

    @cached_property
    def seconds(self) -> Int64s:
        """Seconds of the trial in which the rows happened."""
        return (self["t"] - self.context.trial.t_zero) // SECOND

    @cached_property
    def in_time(self) -> Rows:
        """The rows in the order of their times; itself if they are."""
        times = self["t"]
        if (times[1:] >= times[:-1]).all():
            return self
        order = np.argsort(times, kind="stable")
        return self._take(order, len(order))

    @cached_property
    def placed(self) -> Rows:
        """The rows whose id may have been sent."""
        return self.where(self.places != NOWHERE)

    @cached_property
    def acked(self) -> Rows:
        return self.equal("outcome", Outcome.ACKED)

    @cached_property
    def intact(self) -> Rows:
        """Deliveries of bodies of this run, every byte as it was sent."""
        if self.constant("flags") == Delivery.INTACT:
            return self
        return self.where((self["flags"] & (Delivery.INTACT | Delivery.FOREIGN)) == Delivery.INTACT)


def read_rows(context: Context, group: RowGroup, columns: Sequence[str]) -> Iterator[Rows]:
    """The row group in chunks that fit into the processor's cache."""
    constant = {name: value for name in columns if (value := _constant(group, name)) is not None}
    rest = [name for name in columns if name not in constant]
    if not rest:
        for start in range(0, group.rows, CHUNK):
            yield Rows(context, group, constant, min(CHUNK, group.rows - start))
        return
    try:
        with open_segment(group.path) as file:
            for batch in file.iter_batches(CHUNK, row_groups=[group.index], columns=rest, use_threads=False):
                read = {name: _values(batch.column(name)) for name in rest}
                yield Rows(context, group, constant | read, batch.num_rows)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(group.path, error) from error


def _constant(group: RowGroup, column: str) -> int | None:
    return group.constant(column) if column in group.bounds else None


def _values(array: pa.Array) -> npt.NDArray[Any]:
    if pa.types.is_string(array.type):
        return np.array(array.to_pylist(), object)
    kind = np.dtype(str(array.type))
    # Array.to_numpy() would import pandas, which takes seconds.
    return np.frombuffer(array.buffers()[1], kind, len(array), array.offset * kind.itemsize)

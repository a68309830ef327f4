"""Order within a stream: the messages of one producer and topic, as one consumer got them.

A message is late if a later one of its stream came before it. Streams are followed through one row
group; what was highest before is carried in, and only matters where the row group's first is lower.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from ackworth.pipeline.context import Context
from ackworth.pipeline.ids import Int64s
from ackworth.pipeline.rows import Mask, Rows
from ackworth.pipeline.seen import CHUNK

_ROWS = np.arange(CHUNK, dtype=np.uint32)
_ROW_BITS = (CHUNK - 1).bit_length()
_ROW_MASK = np.uint32(CHUNK - 1)


class Streams:
    """The streams of one consumer within one row group. Seqs are kept plus one: 0 is 'none yet'."""

    def __init__(self, context: Context) -> None:
        self._topics = len(context.trial.topics)
        streams = context.trial.producers * self._topics
        self._few = streams <= 1 << 16
        self._first = np.zeros(streams, np.int64)
        self._highest = np.zeros(streams, np.int64)

    def carry(self, streams: Int64s, highest: Int64s) -> None:
        """What came before this row group."""
        self._highest[streams] = highest

    def summary(self) -> tuple[Int64s, Int64s, Int64s]:
        """The streams that were met, their first and their highest."""
        met = np.flatnonzero(self._first)
        return met, self._first[met], self._highest[met]

    def late(self, rows: Rows) -> Mask | None:
        """Which of the next rows are late; None if none is."""
        streams, order = self._by_stream(rows)
        seqs = rows["seq"][order] + 1
        new = _beginnings(streams)
        starts = np.flatnonzero(new)
        ends = np.append(starts[1:], len(order)) - 1
        who = streams[starts].astype(np.int64)
        before = self._highest[who]
        self._first[who] = np.where(self._first[who] == 0, seqs[starts], self._first[who])
        if ((seqs[1:] > seqs[:-1]) | new[1:]).all() and (seqs[starts] > before).all():
            self._highest[who] = seqs[ends]
            return None
        running = _highest_before(seqs, new, starts, before)
        self._highest[who] = np.maximum(running, seqs)[ends]
        late = np.empty(len(order), np.bool_)
        late[order] = seqs < running
        return late

    def _by_stream(self, rows: Rows) -> tuple[npt.NDArray[Any], Int64s]:
        """The rows' streams, sorted, and the order that sorts them and keeps each stream in its order.

        Stream and row in one number of 32 bits sort twice as fast as any stable sort of the streams.
        """
        if not self._few:
            streams = rows["producer"].astype(np.int64) * self._topics + rows["topic"]
            order = np.argsort(streams, kind="stable")
            return streams[order], order
        keys = rows["producer"].astype(np.uint32)
        keys *= np.uint32(self._topics)
        keys += rows["topic"].astype(np.uint32)
        keys <<= np.uint32(_ROW_BITS)
        keys |= _ROWS[: len(keys)]
        keys.sort()
        return keys >> np.uint32(_ROW_BITS), (keys & _ROW_MASK).astype(np.int64)


def carried_into(streams: Int64s, highests: Int64s) -> Int64s:
    """For summaries in the order of the row groups: the highest that earlier ones carry into each."""
    order = np.argsort(streams, kind="stable")
    new = _beginnings(streams[order])
    carried = np.empty(len(order), np.int64)
    starts = np.flatnonzero(new)
    carried[order] = _highest_before(highests[order], new, starts, np.zeros(len(starts), np.int64))
    return carried


def _beginnings(streams: npt.NDArray[Any]) -> Mask:
    """Where a run of one stream begins."""
    new = np.empty(len(streams), np.bool_)
    new[:1] = True
    np.not_equal(streams[1:], streams[:-1], out=new[1:])
    return new


def _highest_before(values: Int64s, new: Mask, starts: Int64s, carried: Int64s) -> Int64s:
    """For each value the highest of its run before it; a run begins with what is carried into it."""
    previous = np.empty(len(values), np.int64)
    previous[1:] = values[:-1]
    previous[starts] = carried
    # Each run is lifted above all earlier ones, so that one running maximum serves all.
    lift = (np.cumsum(new) - 1) * (int(max(values.max(initial=0), carried.max(initial=0))) + 1)
    highest: Int64s = np.maximum.accumulate(previous + lift) - lift
    return highest

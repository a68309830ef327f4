"""Order within streams: see `pipeline.by_stream`.

A message is late if a later one of its stream came before it. Streams are followed through one row
group; what was highest before is carried in, and only matters where the row group's first is lower.
"""

import numpy as np

from ackworth.pipeline.by_stream import ByStream, beginnings
from ackworth.pipeline.context import Context
from ackworth.pipeline.ids import Int64s, Mask
from ackworth.pipeline.rows import Rows


class Streams:
    """The streams of one consumer within one row group. Seqs are kept plus one: 0 is 'none yet'."""

    def __init__(self, context: Context) -> None:
        streams = context.trial.producers * len(context.trial.topics)
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
        found = rows.by_stream
        who, firsts = found.who, found.seqs[found.starts] + 1
        before = self._highest[who]
        self._first[who] = np.where(self._first[who] == 0, firsts, self._first[who])
        if rows.rising and (firsts > before).all():
            self._highest[who] = found.seqs[found.ends] + 1
            return None
        return self._compare(found, before)

    def _compare(self, found: ByStream, before: Int64s) -> Mask:
        seqs = found.seqs + 1
        running = _highest_before(seqs, found.new, found.starts, before)
        self._highest[found.who] = np.maximum(running, seqs)[found.ends]
        late = np.empty(len(seqs), np.bool_)
        late[found.order] = seqs < running
        return late


def carried_into(streams: Int64s, highests: Int64s) -> Int64s:
    """For summaries in the order of the row groups: the highest that earlier ones carry into each."""
    order = np.argsort(streams, kind="stable")
    new = beginnings(streams[order])
    carried = np.empty(len(order), np.int64)
    starts = np.flatnonzero(new)
    carried[order] = _highest_before(highests[order], new, starts, np.zeros(len(starts), np.int64))
    return carried


def _highest_before(values: Int64s, new: Mask, starts: Int64s, carried: Int64s) -> Int64s:
    """For each value the highest of its run before it; a run begins with what is carried into it."""
    previous = np.empty(len(values), np.int64)
    previous[1:] = values[:-1]
    previous[starts] = carried
    # Each run is lifted above all earlier ones, so that one running maximum serves all.
    lift = (np.cumsum(new) - 1) * (int(max(values.max(initial=0), carried.max(initial=0))) + 1)
    highest: Int64s = np.maximum.accumulate(previous + lift) - lift
    return highest

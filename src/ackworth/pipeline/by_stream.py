"""Deliveries sorted by stream. A stream is the messages of one producer and topic, as one consumer got them."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ackworth.pipeline.ids import Int64s, Mask
from ackworth.pipeline.seen import CHUNK

_ROWS = np.arange(CHUNK, dtype=np.uint32)
_ROW_BITS = (CHUNK - 1).bit_length()
_MOST_STREAMS = 1 << (32 - _ROW_BITS)


class ByStream(NamedTuple):
    """Some rows, stream after stream, each stream in its own order."""

    order: Int64s  # the rows
    seqs: Int64s  # of the rows in that order
    new: Mask  # whether a stream begins there
    starts: Int64s  # where they begin
    who: Int64s  # which streams these are
    producers: Int64s  # whose they are

    @property
    def ends(self) -> Int64s:
        """The last row of each stream."""
        return np.append(self.starts[1:], len(self.order)) - 1

    @property
    def most_topics(self) -> int:
        """Of one producer."""
        return int(np.bincount(self.producers).max(initial=0))

    def spread(self, values: Int64s) -> Int64s:
        """A value of each stream, for each of its rows."""
        return np.repeat(values, np.diff(self.starts, append=len(self.order)))

    def rising(self) -> bool:
        """Whether seqs rise within every stream; then none is there twice."""
        falls = np.flatnonzero(self.seqs[1:] <= self.seqs[:-1])
        return bool(self.new[falls + 1].all())


def by_stream(producers: npt.NDArray[Any], topics: npt.NDArray[Any], seqs: Int64s, all_topics: int) -> ByStream:
    """Sort rows; a stream's number is producer * all_topics + topic."""
    streams, order = _sorted(producers, topics, all_topics)
    new = beginnings(streams)
    starts = np.flatnonzero(new)
    who = streams[starts].astype(np.int64)
    return ByStream(order, seqs.take(order), new, starts, who, who // all_topics)


def _sorted(producers: npt.NDArray[Any], topics: npt.NDArray[Any], all_topics: int) -> tuple[npt.NDArray[Any], Int64s]:
    """Stream and row in one number of 32 bits sort twice as fast as any stable sort of the streams."""
    if (int(producers.max(initial=0)) + 1) * all_topics > _MOST_STREAMS:
        streams = producers.astype(np.int64) * all_topics + topics
        order = np.argsort(streams, kind="stable")
        return streams[order], order
    keys = producers.astype(np.uint32)
    keys *= np.uint32(all_topics << _ROW_BITS)
    keys += topics.astype(np.uint32) << np.uint32(_ROW_BITS)
    keys += _ROWS[: len(keys)]
    keys.sort()
    return keys >> np.uint32(_ROW_BITS), (keys & np.uint32(CHUNK - 1)).astype(np.int64)


def beginnings(streams: npt.NDArray[Any]) -> Mask:
    """Where a run of one stream begins."""
    new = np.empty(len(streams), np.bool_)
    new[:1] = True
    np.not_equal(streams[1:], streams[:-1], out=new[1:])
    return new

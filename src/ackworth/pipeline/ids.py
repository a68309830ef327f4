"""Identity as a number: all ids that were sent stand in one row, and sets of them are bits.

Seqs are dense per producer, so (producer, seq) has a place: producer 0's messages come first, then
producer 1's, and so on. An id that was certainly never sent (an unknown producer, a seq beyond the
producer's last) has no place, whatever a corrupt header claims; so nothing grows with its value.
Places are cut into buckets of 65,536: a bucket's bits are 8 KiB, and buckets add up independently.
"""

import mmap
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ackworth.pipeline.compressed import decompress

Int64s = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

BUCKET_BITS = 16
BUCKET = 1 << BUCKET_BITS

NOWHERE = -1  # the place of an id that has none


@dataclass(frozen=True)
class Ids:
    counts: tuple[int, ...]  # per producer: its last seq + 1

    def __reduce__(self) -> tuple[type["Ids"], tuple[tuple[int, ...]]]:
        return Ids, (self.counts,)  # what is derived need not travel

    @cached_property
    def starts(self) -> Int64s:
        """The place of each producer's first message, and the end of all."""
        return np.concatenate(([0], np.cumsum(np.array(self.counts, np.int64))))

    @property
    def total(self) -> int:
        return int(self.starts[-1])

    @property
    def buckets(self) -> int:
        return -(-self.total // BUCKET)

    def cover(self, producers: tuple[int, int], seqs: tuple[int, int]) -> bool:
        """Whether all ids within bounds have a place."""
        counts = self.counts[producers[0] : producers[1] + 1] if producers[0] >= 0 else ()
        return len(counts) == producers[1] - producers[0] + 1 and seqs[0] >= 0 and seqs[1] < min(counts)

    def places(self, producers: npt.NDArray[np.int16] | int, seqs: Int64s, all_placed: bool = False) -> Int64s:
        """The places of ids, NOWHERE for those that have none, unless all are known to have one."""
        who = producers if isinstance(producers, int) else producers.astype(np.intp)
        places = np.take(self._start_of, who) + seqs
        if not all_placed:
            outside = seqs.view(np.uint64) >= self._count_of[who]
            if outside.any():
                places[outside] = NOWHERE
        return places

    def producers_of(self, places: Int64s) -> Int64s:
        return np.searchsorted(self.starts, places, side="right") - 1

    def names(self, places: Int64s) -> list[str]:
        """Places as "producer/seq"."""
        producers = self.producers_of(places)
        return [
            f"{p}/{seq}" for p, seq in zip(producers.tolist(), (places - self.starts[producers]).tolist(), strict=True)
        ]

    # One entry for every int16, negative ones counted from the end: what a header claims needs no check before.
    @cached_property
    def _start_of(self) -> Int64s:
        return _spread(self.starts[:-1])

    @cached_property
    def _count_of(self) -> npt.NDArray[np.uint64]:
        return _spread(self.counts).view(np.uint64)


def _spread(values: Sequence[int] | Int64s) -> Int64s:
    table = np.zeros(1 << 16, np.int64)
    table[: len(values)] = values
    return table


@dataclass(frozen=True)
class PlaceSet:
    """A set of places, compressed bucket by bucket."""

    buckets: dict[int, bytes] = field(default_factory=dict)

    def bits(self, bucket: int) -> Bits:
        found = self.buckets.get(bucket)
        return np.zeros(BUCKET // 8, np.uint8) if found is None else np.frombuffer(decompress(found), np.uint8)

    def first(self, limit: int) -> Int64s:
        """The lowest places of the set."""
        found: list[Int64s] = [np.zeros(0, np.int64)]
        for bucket in sorted(self.buckets):
            found.append(places_in(bucket, self.bits(bucket), limit))
            limit -= len(found[-1])
            if not limit:
                break
        return np.concatenate(found)

    def holds(self, places: Int64s) -> npt.NDArray[np.bool_]:
        """Which of a few places are in the set."""
        found = np.zeros(len(places), np.bool_)
        for bucket in np.unique(places >> BUCKET_BITS).tolist():
            here = places >> BUCKET_BITS == bucket
            found[here] = unpack(self.bits(bucket))[places[here] - bucket * BUCKET]
        return found

    def flags(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """One boolean a place. Memory is taken only where the set has places."""
        flags = blank(ids.buckets)
        for bucket in self.buckets:
            flags[bucket * BUCKET : (bucket + 1) * BUCKET] = unpack(self.bits(bucket))
        return flags


def blank(buckets: int) -> npt.NDArray[np.bool_]:
    """One boolean a place, all false. Memory is taken in small pages, and only where it is touched.

    np.zeros would ask for huge pages, which take a hundred times as much where places lie apart.
    """
    memory = mmap.mmap(-1, max(1, buckets) * BUCKET, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, np.bool_)


def unpack(bits: bytes | Bits) -> npt.NDArray[np.bool_]:
    """A bucket's bits as booleans."""
    return np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little").view(np.bool_)


def pack(flags: npt.NDArray[np.bool_]) -> Bits:
    return np.packbits(flags, bitorder="little")


def count(bits: Bits) -> int:
    return int(np.bitwise_count(bits.view(np.uint64)).sum())


def places_in(bucket: int, bits: bytes | Bits, limit: int | None = None) -> Int64s:
    """The places of the bits that are set, lowest first."""
    return np.flatnonzero(unpack(bits))[:limit] + bucket * BUCKET

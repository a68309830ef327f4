"""Which places came, and which came again: a set that adds up exactly over chunks and tasks."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ackworth.pipeline.ids import BUCKET, BUCKET_BITS, Bits, Int64s, blank, pack

# Rows of a chunk: few enough for its columns to stay in the processor's cache.
CHUNK = 1 << 15

_STEPS = np.arange(CHUNK, dtype=np.int64)


class Seen:
    """Places that were added. Memory is taken only where places are touched."""

    def __init__(self, buckets: int) -> None:
        self._came = blank(buckets)
        self._again: npt.NDArray[np.bool_] | None = None
        self._touched = np.zeros(buckets, np.bool_)
        # numpy sorts 32-bit numbers three times as fast as larger ones.
        self._sortable: type[Any] = np.uint32 if len(self._came) <= 1 << 32 else np.int64

    def add(self, places: Int64s) -> None:
        """Add a chunk of places; a place may come several times."""
        size = len(places)
        if not size:
            return
        first = int(places[0])
        if places[-1] - first == size - 1 and np.array_equal(places, _STEPS[:size] + first):
            self._add_run(first, size)
        else:
            self._add_any(places)

    def _add_run(self, first: int, size: int) -> None:
        run = self._came[first : first + size]
        if run.any():
            self._repeat(np.flatnonzero(run) + first)
        run[:] = True
        self._touched[first >> BUCKET_BITS : ((first + size - 1) >> BUCKET_BITS) + 1] = True

    def _add_any(self, places: Int64s) -> None:
        """Sorted, a chunk goes through memory in one direction, and what it repeats stands side by side."""
        keys = places.astype(self._sortable)
        keys.sort()
        places = keys.astype(np.int64)
        repeated = self._came[places]
        repeated[1:] |= keys[1:] == keys[:-1]
        if repeated.any():
            self._repeat(places[repeated])
        self._came[places] = True
        buckets = keys >> BUCKET_BITS
        self._touched[buckets[-1]] = True
        self._touched[buckets[:-1][buckets[1:] != buckets[:-1]]] = True

    def _repeat(self, places: Int64s) -> None:
        if self._again is None:
            self._again = blank(len(self._came) // BUCKET)
        self._again[places] = True

    def buckets(self) -> Iterator[tuple[int, "Came"]]:
        for bucket in np.flatnonzero(self._touched).tolist():
            part = slice(bucket * BUCKET, (bucket + 1) * BUCKET)
            again = None if self._again is None or not self._again[part].any() else pack(self._again[part])
            yield bucket, Came(pack(self._came[part]), again)


class Came(NamedTuple):
    """One bucket: the places that came, and those that came more than once."""

    once: Bits
    again: Bits | None

    def __or__(self, other: "Came") -> "Came":
        both = self.once & other.once
        again = [bits for bits in (self.again, other.again, both if both.any() else None) if bits is not None]
        return Came(self.once | other.once, np.bitwise_or.reduce(again) if again else None)

"""Which places came, and which came again: a set that adds up exactly over chunks and tasks."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ackworth.pipeline.ids import BUCKET, BUCKET_BITS, Bits, Int64s, blank, pack

# Rows of a chunk: few enough for its columns to stay in the processor's cache.
CHUNK = 1 << 15

# A place that comes less often can be counted in a byte that was 1.
_MOST_COUNTED = 255

# Places that take up at most so many times their number are close together.
_LOOSE = 8


class Seen:
    """Places that were added. Memory is taken only where places are touched."""

    def __init__(self, buckets: int) -> None:
        self._came = blank(buckets).view(np.uint8)
        self._again: npt.NDArray[np.bool_] | None = None
        self._touched = np.zeros(buckets, np.bool_)
        # numpy sorts 32-bit numbers three times as fast as larger ones.
        self._sortable: type[Any] = np.uint32 if len(self._came) <= 1 << 32 else np.int64

    def add(self, places: Int64s, copies: int = CHUNK) -> None:
        """Add a chunk of places; a place may come several times, but not more than `copies`."""
        size = len(places)
        if not size:
            return
        if places[-1] - places[0] == size - 1 and (places[1:] > places[:-1]).all():
            self._add_run(int(places[0]), size)
        elif copies < _MOST_COUNTED:
            self._add_counted(places)
        else:
            self._add_any(places)

    def _add_run(self, first: int, size: int) -> None:
        run = self._came[first : first + size]
        if run.any():
            self._repeat(np.flatnonzero(run) + first)
        run[:] = 1
        self._touch(first, size)

    def _add_counted(self, places: Int64s) -> None:
        """Places that come a few times are counted: in a byte, which is 0 or 1 before and after."""
        np.add.at(self._came, places, np.uint8(1))
        again = self._came.take(places) > 1
        if again.any():
            self._repeat(places[again])
            self._came[places[again]] = 1
        buckets = places >> BUCKET_BITS
        self._touched[buckets[0]] = True
        self._touched[buckets[1:].take(np.flatnonzero(buckets[1:] != buckets[:-1]))] = True

    def _add_any(self, places: Int64s) -> None:
        low = int(places.min())
        span = int(places.max()) - low + 1
        if span > _LOOSE * len(places) or not self._add_window(places, low, span):
            self._add_sorted(places)

    def _add_window(self, places: Int64s, low: int, span: int) -> bool:
        """Places that lie close together are marked in a window first. False, and nothing added, if one came twice."""
        window = np.zeros(span, np.uint8)
        window[places - low] = 1
        if np.count_nonzero(window) < len(places):
            return False
        before = self._came[low : low + span]
        again = before & window
        if again.any():
            self._repeat(np.flatnonzero(again) + low)
        before |= window
        self._touch(low, span)
        return True

    def _add_sorted(self, places: Int64s) -> None:
        """Sorted, what a chunk repeats stands side by side."""
        keys = places.astype(self._sortable)
        keys.sort()
        new = np.append(True, keys[1:] != keys[:-1])
        self._add_counted(keys[new].astype(np.int64))
        self._repeat(keys[~new].astype(np.int64))

    def _touch(self, low: int, span: int) -> None:
        self._touched[low >> BUCKET_BITS : ((low + span - 1) >> BUCKET_BITS) + 1] = True

    def _repeat(self, places: Int64s) -> None:
        if self._again is None:
            self._again = blank(len(self._came) // BUCKET)
        self._again[places] = True

    def buckets(self) -> Iterator[tuple[int, "Came"]]:
        for bucket in np.flatnonzero(self._touched).tolist():
            part = slice(bucket * BUCKET, (bucket + 1) * BUCKET)
            again = None if self._again is None or not self._again[part].any() else pack(self._again[part])
            yield bucket, Came(pack(self._came[part].view(np.bool_)), again)


class Came(NamedTuple):
    """One bucket: the places that came, and those that came more than once."""

    once: Bits
    again: Bits | None

    def __or__(self, other: "Came") -> "Came":
        both = self.once & other.once
        again = [bits for bits in (self.again, other.again, both if both.any() else None) if bits is not None]
        return Came(self.once | other.once, np.bitwise_or.reduce(again) if again else None)

"""Log-linear histograms: they add up exactly, and a percentile is off by less than half a percent.

The place of a value in the histogram is made of the exponent and the top 7 bits of the mantissa of
its float32, so 128 places double the value.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ackworth.pipeline.ids import Int64s

_DROPPED = 23 - 7
_BELOW_ONE = (127 << 7) - 1  # the place before that of 1.0: 0 and less are counted there

SIZE = 1 << 13  # more than the places of all int64

# Numbers that spread over at most so many times their number are counted in an array.
_LOOSE = 8


class Counted(NamedTuple):
    """How often each of some numbers came; numbers rise."""

    numbers: Int64s
    counts: Int64s


def places(values: Int64s) -> npt.NDArray[np.int32]:
    found = values.astype(np.float32).view(np.int32)
    found >>= _DROPPED
    found -= _BELOW_ONE
    return np.maximum(found, 0, out=found)


def tally(values: Int64s, per_second: Counted) -> Counted:
    """The histograms of values in the order of their times, of all seconds in one: second * SIZE + place."""
    found = places(values)
    low, width = int(found.min()), int(found.max()) - int(found.min()) + 1
    seconds, counts = per_second
    if len(seconds) * width > _LOOSE * len(values) + 1024:
        numbers, counts = np.unique(np.repeat(seconds * SIZE, counts) + found, return_counts=True)
        return Counted(numbers, counts)
    rows = np.arange(-low, len(seconds) * width - low, width)
    cells = np.bincount(np.repeat(rows, counts) + found)
    filled = np.flatnonzero(cells)
    return Counted(seconds[filled // width] * SIZE + low + filled % width, cells[filled])


def add_up(parts: list[Counted]) -> Counted:
    if not parts:
        return Counted(np.zeros(0, np.int64), np.zeros(0, np.int64))
    numbers, counts = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    low = int(numbers.min(initial=0))
    if int(numbers.max(initial=0)) - low > _LOOSE * len(numbers):
        different, where = np.unique(numbers, return_inverse=True)
        return Counted(different, _sums(where, counts))
    cells = _sums(numbers - low, counts)
    filled = np.flatnonzero(cells)
    return Counted(filled + low, cells[filled])


def _sums(where: Int64s, counts: Int64s) -> Int64s:
    """The counts of each number; float64, in which they are added, is exact up to 2^53."""
    return np.bincount(where, counts).astype(np.int64)


def percentile(histogram: Counted, share: int, censored: int = 0) -> float | None:
    """The value below which `share` of 10,000 lie; censored ones are above all. None: it is one of those."""
    count = int(histogram.counts.sum())
    rank = -(-(count + censored) * share // 10_000)
    if not 0 < rank <= count:
        return None
    place = histogram.numbers[np.searchsorted(np.cumsum(histogram.counts), rank)]
    return _middle(int(place))


def _middle(place: int) -> float:
    if place == 0:
        return 0.0
    edges = (np.array([place, place + 1], np.int32) + _BELOW_ONE) << _DROPPED
    return float(edges.view(np.float32).astype(np.float64).mean())

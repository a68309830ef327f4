"""Log-linear histograms: they add up exactly, and a percentile is off by less than half a percent.

The place of a value in the histogram is made of the exponent and the top 7 bits of the mantissa of
its float64, so 128 places double the value.
"""

from typing import NamedTuple

import numpy as np

from ackworth.pipeline.ids import Int64s

_DROPPED = 52 - 7
_BELOW_ONE = (1023 << 7) - 1  # the place before that of 1.0: 0 and less are counted there

SIZE = 1 << 13  # more than the places of all int64


class Counted(NamedTuple):
    """How often each of some numbers came; numbers rise."""

    numbers: Int64s
    counts: Int64s


def places(values: Int64s) -> Int64s:
    places: Int64s = (np.maximum(values, 0).astype(np.float64).view(np.int64) >> _DROPPED) - _BELOW_ONE
    return np.maximum(places, 0, out=places)


def tally(numbers: Int64s) -> Counted:
    low, high = int(numbers.min()), int(numbers.max())
    if high - low > 8 * len(numbers) + 1024:
        return Counted(*np.unique(numbers, return_counts=True))
    counts = np.bincount(numbers - low)
    found = np.flatnonzero(counts)
    return Counted(found + low, counts[found])


def add_up(parts: list[Counted]) -> Counted:
    if not parts:
        return Counted(np.zeros(0, np.int64), np.zeros(0, np.int64))
    numbers, where = np.unique(np.concatenate([part.numbers for part in parts]), return_inverse=True)
    counts = np.zeros(len(numbers), np.int64)
    np.add.at(counts, where, np.concatenate([part.counts for part in parts]))
    return Counted(numbers, counts)


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
    edges = (np.array([place, place + 1], np.int64) + _BELOW_ONE) << _DROPPED
    return float(edges.view(np.float64).mean())

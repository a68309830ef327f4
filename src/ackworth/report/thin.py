"""Fewer points without a smaller truth: each bin of a long series keeps its lowest and its highest value."""

import math
from collections.abc import Sequence

Values = Sequence[float | None]


def bins(length: int, limit: int) -> list[range]:
    """Ranges of indexes, one each if there are at most limit, else so wide that two points a bin fit the limit."""
    width = 1 if length <= limit else math.ceil(length / (limit // 2))
    return [range(first, min(first + width, length)) for first in range(0, length, width)]


def extremes(values: Values, indexes: range) -> list[int]:
    """Where the lowest and the highest value of a bin are, in order of time; empty if nothing is known there."""
    known = [(value, index) for index in indexes if (value := values[index]) is not None]
    return sorted({min(known)[1], max(known)[1]}) if known else []

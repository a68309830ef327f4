"""Which messages a receiver gets, and what is left of a claim. Plain arithmetic, the same for all stores."""

import bisect
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

# So many topics share one claim if all of them have plenty. More would be fairer, and slower: each
# costs a row and a seek.
SHARING = 16

Source = TypeVar("Source")


class Range(NamedTuple):
    """Consecutive messages of one topic."""

    topic: int
    first: int
    messages: int
    attempts: int = 1

    @property
    def end(self) -> int:
        return self.first + self.messages

    def split(self, count: int) -> tuple["Range", "Range"]:
        rest = self._replace(first=self.first + count, messages=self.messages - count)
        return self._replace(messages=count), rest

    def overlap(self, other: "Range") -> "Range | None":
        """The part of this range that is in the other too."""
        first, end = max(self.first, other.first), min(self.end, other.end)
        if self.topic != other.topic or first >= end:
            return None
        return self._replace(first=first, messages=end - first)


class Setback(NamedTuple):
    """Messages that were not dealt with."""

    range: Range  # its attempts are those so far
    due: float | None  # when they are to be had again, seconds of the wall clock; None: never, they are dead
    cause: str
    key: str | None = None  # in an ordered group: whose order they hold up


def share_out(ready: Sequence[Range], limit: int, after: int) -> Iterator[Range]:
    """Up to `limit` messages of topics that have some, in turn, beginning with those after topic `after`."""
    if not ready:
        return
    share = -(-limit // min(len(ready), SHARING))
    for topic in sorted(ready, key=lambda r: (r.topic <= after, r.topic)):
        count = min(topic.messages, share, limit)
        if count == 0:
            return
        limit -= count
        yield topic._replace(messages=count)


def take(claims: Iterable[tuple[Source, Range]], limit: int) -> Iterator[tuple[Source, Range, Range]]:
    """The first `limit` messages of (source, range) pairs: the source, what is taken and what is left."""
    for source, claim in claims:
        if limit == 0:
            return
        taken, rest = claim.split(min(claim.messages, limit))
        limit -= taken.messages
        yield source, taken, rest


class Spread:
    """Ranges by where they are: thousands of them meet thousands of others, and not each is tried with each."""

    def __init__(self, ranges: Iterable[Range]) -> None:
        self._ordered = sorted(ranges)
        self._ends = list(itertools.accumulate(((each.topic, each.end) for each in self._ordered), max))

    def touching(self, other: Range) -> Iterator[Range]:
        """Those that have messages in common with it, in their order."""
        start = bisect.bisect_right(self._ends, (other.topic, other.first))
        for at in range(start, len(self._ordered)):
            each = self._ordered[at]
            if (each.topic, each.first) >= (other.topic, other.end):
                return
            if each.end > other.first:
                yield each


def without(ranges: Iterable[Range], gone: Iterable[Range]) -> list[Range]:
    """What is left of the ranges."""
    cuts = Spread(gone)
    return [part for each in ranges for part in _parts_outside(each, cuts.touching(each))]


def _parts_outside(whole: Range, cuts: Iterable[Range]) -> Iterator[Range]:
    """cuts: in their order, so that each leaves what is before it alone."""
    for cut in cuts:
        if inside := whole.overlap(cut):
            before, rest = whole.split(inside.first - whole.first)
            _, whole = rest.split(inside.messages)
            if before.messages:
                yield before
    if whole.messages:
        yield whole

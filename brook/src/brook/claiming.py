"""Which messages a receiver gets. Plain arithmetic, the same for all stores."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

# So many topics share one claim if all of them have plenty. More would be fairer, and slower: each
# costs a row and a seek.
SHARING = 16


class Range(NamedTuple):
    """Consecutive messages of one topic."""

    topic: int
    first: int
    messages: int
    attempts: int = 1

    def split(self, count: int) -> tuple["Range", "Range"]:
        rest = self._replace(first=self.first + count, messages=self.messages - count)
        return self._replace(messages=count), rest


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


def take(claims: Iterable[tuple[int, Range]], limit: int) -> Iterator[tuple[int, Range, Range]]:
    """The first `limit` messages of (receipt, range) pairs: the receipt, what is taken and what is left."""
    for receipt, claim in claims:
        if limit == 0:
            return
        taken, rest = claim.split(min(claim.messages, limit))
        limit -= taken.messages
        yield receipt, taken, rest

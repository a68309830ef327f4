"""Who gets what of an offer, if several ask at once: as if one had asked after the other. Plain arithmetic."""

from collections.abc import Iterator
from typing import NamedTuple

from brook.claiming import Range, share_out, take
from brook.stores.base import ClaimRequest
from brook.stores.offers import Offer, Retry


class Share(NamedTuple):
    """What one of them gets; of what was lost or is due: what is taken, and what is left."""

    lost: list[tuple[int, Range, Range]]  # by the receipt that had it
    due: list[tuple[Retry, Range, Range]]
    new: list[Range]

    @property
    def ranges(self) -> list[Range]:
        return [*(taken for _, taken, _ in self.lost), *(taken for _, taken, _ in self.due), *self.new]

    @property
    def messages(self) -> int:
        return sum(each.messages for each in self.ranges)


def deal(offer: Offer, request: ClaimRequest, ordered: bool, after: int) -> Iterator[Share]:
    """A share for each thread, until there is nothing left; new messages of the topics after `after` come first.

    ordered: of a topic one share alone gets something.
    """
    for _ in request.threads:
        share = _share(offer, request.limit, after)
        if not share.messages:
            return
        yield share
        offer = _rest(offer, share)
        if ordered:
            offer = _without(offer, {each.topic for each in share.ranges})
        after = share.new[-1].topic if share.new else after


def _share(offer: Offer, limit: int, after: int) -> Share:
    lost = list(take(offer.lost, limit))
    limit -= sum(taken.messages for _, taken, _ in lost)
    due = list(take(offer.due, limit))
    limit -= sum(taken.messages for _, taken, _ in due)
    return Share(lost, due, list(share_out(offer.new, limit, after)))


def _rest(offer: Offer, share: Share) -> Offer:
    claimed = {each.topic: each.messages for each in share.new}
    return Offer(
        [(receipt, rest) for receipt, _, rest in share.lost if rest.messages] + offer.lost[len(share.lost) :],
        [(retry, rest) for retry, _, rest in share.due if rest.messages] + offer.due[len(share.due) :],
        [rest for each in offer.new if (rest := each.split(claimed.get(each.topic, 0))[1]).messages],
    )


def _without(offer: Offer, topics: set[int]) -> Offer:
    return Offer(
        [(receipt, each) for receipt, each in offer.lost if each.topic not in topics],
        [(retry, each) for retry, each in offer.due if each.topic not in topics],
        [each for each in offer.new if each.topic not in topics],
    )

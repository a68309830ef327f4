"""What a group can claim: what its owner lost, what is due again, what is new."""

import json
import math
from collections.abc import Collection
from typing import NamedTuple

from brook.claiming import Range
from brook.errors import UnknownGroup
from brook.identity import is_dead
from brook.sql import statements as sql
from brook.stores.base import ClaimRequest
from brook.stores.places import require_none_of, topic_and_offset
from brook.stores.session import Session, row


class Group(NamedTuple):
    id: int
    ordered: bool
    tags: tuple[str, ...]
    follows_all: bool


class Receipt(NamedTuple):
    id: int
    client: str
    expires: float

    def is_lost(self, now: float) -> bool:
        return self.expires <= now or is_dead(self.client)


class Retry(NamedTuple):
    """A row of messages that wait."""

    range: Range
    due: float
    cause: str
    key: str | None


class Stock(NamedTuple):
    """What a group's tables say, whoever asks."""

    receipts: list[Receipt]
    unreadable: set[int]  # topics
    ready: list[Range]  # of each topic, what nobody has claimed
    next_due: float


class Offer(NamedTuple):
    """What a group can claim."""

    lost: list[tuple[int, Range]]  # by the receipt that had it
    due: list[tuple[Retry, Range]]
    new: list[Range]  # by topic


class Outlook(NamedTuple):
    """What there was to claim when the database was last looked at."""

    version: int | None
    unclaimed: bool
    receipts: list[Receipt]
    next_due: float

    def is_empty(self, now: float) -> bool:
        return not self.unclaimed and self.next_due > now and not any(r.is_lost(now) for r in self.receipts)


def find_group(db: Session, name: str) -> Group:
    found = group_or_none(db, name)
    if found is None:
        raise UnknownGroup(f"{name!r}: no such group: subscribe it first")
    return found


def group_or_none(db: Session, name: str) -> Group | None:
    found = row(db, sql.GROUP, (name,))
    if found is None:
        return None
    group_id, ordered, tags, follows_all = found
    return Group(group_id, bool(ordered), tuple(json.loads(tags)), bool(follows_all))


def lock_group(db: Session, name: str) -> Group:
    db.lock_groups([name])
    return find_group(db, name)


def look(db: Session, version: int | None, request: ClaimRequest) -> Outlook:
    group = find_group(db, request.group)
    stock = take_stock(db, group)
    offer = find_offer(db, group, request, stock, lost=[])
    return Outlook(version, bool(offer.new), stock.receipts, stock.next_due)


def take_stock(db: Session, group: Group) -> Stock:
    # The receipts first: what is settled from there on counts as claimed still.
    receipts, unreadable, ready, next_due = db.gather(
        (sql.RECEIPTS, (group.id,)),
        (sql.UNREADABLE, ()),
        (sql.READY, (group.id,)),
        (sql.NEXT_DUE, (group.id,)),
    )
    ((due,),) = next_due
    return Stock(
        [Receipt(*found) for found in receipts],
        {topic for (topic,) in unreadable},
        [Range(*found) for found in ready],
        math.inf if due is None else due,
    )


def find_offer(db: Session, group: Group, request: ClaimRequest, stock: Stock, lost: Collection[Receipt]) -> Offer:
    """lost: the receipts of the stock that can be taken over."""
    require_none_of(stock.unreadable, request.topics or ())
    # In an ordered group a topic that somebody has is nobody else's.
    kept = [receipt for receipt in stock.receipts if receipt not in lost] if group.ordered else []
    taken = stock.unreadable | {each.topic for receipt in kept for each in held(db, receipt.id)}

    def is_open(each: Range) -> bool:
        return each.topic not in taken and (request.topics is None or each.topic in request.topics)

    theirs = [(receipt.id, each) for receipt in lost for each in held(db, receipt.id) if is_open(each)]
    due = _due(db, group, request, taken) if stock.next_due <= request.now else []
    return Offer(theirs, due, [each for each in stock.ready if is_open(each)])


def receipts(db: Session, group_id: int) -> list[Receipt]:
    return [Receipt(*found) for found in db.rows(sql.RECEIPTS, (group_id,))]


def lock_receipts(db: Session, ids: Collection[int]) -> dict[int, int]:
    """Nobody else settles, acks or takes these over; the group of each that is still there."""
    return dict(db.rows(sql.these_receipts(ids) + db.locking))


def lock_lost(db: Session, group: Group, now: float) -> tuple[Stock, list[Receipt]]:
    """The stock, and the receipts that are lost: their clients cannot ack or renew them from here on."""
    stock = take_stock(db, group)
    locked = {receipt.id for receipt in stock.receipts if receipt.is_lost(now)}
    if not locked:
        return stock, []
    lock_receipts(db, locked)
    stock = take_stock(db, group)
    return stock, [receipt for receipt in stock.receipts if receipt.id in locked and receipt.is_lost(now)]


def held(db: Session, receipt: int) -> list[Range]:
    rows = db.rows(sql.CLAIMS, (receipt,))
    return [Range(*topic_and_offset(place), count, attempts) for place, count, attempts in rows]


def _due(db: Session, group: Group, request: ClaimRequest, taken: Collection[int]) -> list[tuple[Retry, Range]]:
    wanted = {"group_id": group.id, "now": request.now, "limit": request.limit}
    rows = db.rows(sql.due(request.topics, taken), wanted)
    ranges = [Range(*topic_and_offset(place), count, attempts) for place, count, attempts, *_ in rows]
    return [(Retry(each, *found[3:]), each) for each, found in zip(ranges, rows, strict=True)]

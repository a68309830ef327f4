"""What a group can claim: what its owner lost, what is due again, what is new."""

import json
import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from brook.claiming import Range
from brook.errors import UnknownGroup
from brook.identity import is_dead
from brook.sql import statements as sql
from brook.stores.base import ClaimRequest
from brook.stores.places import require_one_outside, topic_and_offset
from brook.stores.session import Row, Session


class Group(NamedTuple):
    id: int
    name: str
    ordered: bool
    tags: tuple[str, ...]
    follows_all: bool


class Receipt(NamedTuple):
    id: int
    client: str
    expires: float


class Retry(NamedTuple):
    """A row of messages that wait."""

    range: Range
    due: float
    cause: str
    key: str | None


class Stock(NamedTuple):
    """What a group's tables say, whoever asks."""

    group: Group
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
        return not self.unclaimed and self.next_due > now and not _lost(self.receipts, now)


def find_group(db: Session, name: str) -> Group:
    return _the_group(name, db.rows(sql.GROUP, (name,)))


def group_or_none(db: Session, name: str) -> Group | None:
    return _group_or_none(name, db.rows(sql.GROUP, (name,)))


def _the_group(name: str, rows: Sequence[Row]) -> Group:
    found = _group_or_none(name, rows)
    if found is None:
        raise UnknownGroup(f"{name!r}: no such group: subscribe it first")
    return found


def _group_or_none(name: str, rows: Sequence[Row]) -> Group | None:
    for group_id, ordered, tags, follows_all in rows:
        return Group(group_id, name, bool(ordered), tuple(json.loads(tags)), bool(follows_all))
    return None


def lock_group(db: Session, name: str) -> Group:
    db.lock_groups([name])
    return find_group(db, name)


def look(db: Session, version: int | None, request: ClaimRequest) -> Outlook:
    stock = take_stock(db, request.group)
    offer = find_offer(db, request, stock, lost=[])
    return Outlook(version, bool(offer.new), stock.receipts, stock.next_due)


def take_stock(db: Session, name: str) -> Stock:
    """Of the group of this name."""
    # The receipts first: what is settled from there on counts as claimed still.
    of_group = (sql.RECEIPTS, sql.READY, sql.NEXT_DUE, sql.GROUP)
    found = db.gather(*[(statement, (name,)) for statement in of_group], (sql.UNREADABLE, ()))
    receipts, ready, ((due,),), group, unreadable = found
    return Stock(
        _the_group(name, group),
        [Receipt(*found) for found in receipts],
        {topic for (topic,) in unreadable},
        [Range(*found) for found in ready],
        math.inf if due is None else due,
    )


def find_offer(db: Session, request: ClaimRequest, stock: Stock, lost: Sequence[Receipt]) -> Offer:
    """lost: the receipts of the stock that can be taken over."""
    require_one_outside(db, stock.unreadable, request.topics or ())
    # In an ordered group a topic that somebody has is nobody else's.
    kept = [receipt.id for receipt in stock.receipts if receipt not in lost] if stock.group.ordered else []
    taken = stock.unreadable | {each.topic for ranges in held(db, kept).values() for each in ranges}

    def is_open(each: Range) -> bool:
        return each.topic not in taken and (request.topics is None or each.topic in request.topics)

    owned = held(db, [receipt.id for receipt in lost])
    theirs = [(receipt, each) for receipt, ranges in owned.items() for each in ranges if is_open(each)]
    theirs.sort(key=lambda lost: lost[1])  # by place, whoever had it: that keeps the order of a key
    due = _due(db, stock.group, request, taken) if stock.next_due <= request.now else []
    return Offer(theirs, due, [each for each in stock.ready if is_open(each)])


def receipts(db: Session, group: str) -> list[Receipt]:
    return [Receipt(*found) for found in db.rows(sql.RECEIPTS, (group,))]


def lock_receipts(db: Session, ids: Sequence[int]) -> dict[int, int]:
    """Nobody else settles, acks or takes these over; the group of each that is still there."""
    return dict(db.rows(sql.these_receipts(len(ids)) + db.locking, ids)) if ids else {}


def lock_lost(db: Session, stock: Stock, now: float) -> tuple[Stock, list[Receipt]]:
    """The stock as it is then, and the receipts that are lost: their clients cannot ack or renew them from here on."""
    locked = [receipt.id for receipt in _lost(stock.receipts, now)]
    if not locked:
        return stock, []
    lock_receipts(db, locked)
    stock = take_stock(db, stock.group.name)
    return stock, [receipt for receipt in _lost(stock.receipts, now) if receipt.id in locked]


def _lost(receipts: Sequence[Receipt], now: float) -> list[Receipt]:
    """Those whose lease is over or whose client is dead, which is looked up once for all that it has."""
    dead = {client for client in {receipt.client for receipt in receipts} if is_dead(client)}
    return [receipt for receipt in receipts if receipt.expires <= now or receipt.client in dead]


def held(db: Session, receipts: Sequence[int]) -> dict[int, list[Range]]:
    """What each of them holds."""
    ranges: dict[int, list[Range]] = {receipt: [] for receipt in receipts}
    rows = db.rows(sql.claims_of(len(ranges)), list(ranges)) if ranges else []
    for receipt, place, count, attempts in rows:
        ranges[receipt].append(Range(*topic_and_offset(place), count, attempts))
    return ranges


def _due(db: Session, group: Group, request: ClaimRequest, taken: Collection[int]) -> list[tuple[Retry, Range]]:
    wanted = {"group_id": group.id, "now": request.now, "limit": request.limit * len(request.threads)}
    rows = db.rows(sql.due(request.topics, taken), wanted)
    ranges = [Range(*topic_and_offset(place), count, attempts) for place, count, attempts, *_ in rows]
    return [(Retry(each, *found[3:]), each) for each, found in zip(ranges, rows, strict=True)]

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
from brook.stores.places import require_readable, topic_and_offset, unreadable
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
    group = find_group(db, name)
    db.lock_groups([group.id])
    return group


def look(db: Session, version: int | None, request: ClaimRequest) -> Outlook:
    group = find_group(db, request.group)
    ((next_due,),) = db.rows(sql.NEXT_DUE, (group.id,))
    out = receipts(db, group.id)
    offer = find_offer(db, group, request, out, lost=[])
    return Outlook(version, bool(offer.new), out, math.inf if next_due is None else next_due)


def find_offer(
    db: Session, group: Group, request: ClaimRequest, out: Collection[Receipt], lost: Collection[Receipt]
) -> Offer:
    """out: the claims that there are; lost: those of them that can be taken over."""
    require_readable(db, request.topics or ())
    # In an ordered group a topic that somebody has is nobody else's.
    kept = [receipt for receipt in out if receipt not in lost] if group.ordered else []
    taken = unreadable(db) | {each.topic for receipt in kept for each in held(db, receipt.id)}

    def is_open(each: Range) -> bool:
        return each.topic not in taken and (request.topics is None or each.topic in request.topics)

    theirs = [(receipt.id, each) for receipt in lost for each in held(db, receipt.id) if is_open(each)]
    new = [Range(*found) for found in db.rows(sql.READY, (group.id,))]
    return Offer(theirs, _due(db, group, request, taken), [each for each in new if is_open(each)])


def receipts(db: Session, group_id: int) -> list[Receipt]:
    return [Receipt(*found) for found in db.rows(sql.RECEIPTS, (group_id,))]


def lock_receipts(db: Session, ids: Collection[int]) -> dict[int, int]:
    """Nobody else settles, acks or takes these over; the group of each that is still there."""
    return dict(db.rows(sql.these_receipts(ids) + db.locking))


def lock_lost(db: Session, group: Group, now: float) -> tuple[list[Receipt], list[Receipt]]:
    """All receipts of the group, and those that are lost: their clients cannot ack or renew them from here on."""
    out = receipts(db, group.id)
    locked = {receipt.id for receipt in out if receipt.is_lost(now)}
    if locked:
        lock_receipts(db, locked)
        out = receipts(db, group.id)
    return out, [receipt for receipt in out if receipt.id in locked and receipt.is_lost(now)]


def held(db: Session, receipt: int) -> list[Range]:
    rows = db.rows(sql.CLAIMS, (receipt,))
    return [Range(*topic_and_offset(place), count, attempts) for place, count, attempts in rows]


def _due(db: Session, group: Group, request: ClaimRequest, taken: Collection[int]) -> list[tuple[Retry, Range]]:
    wanted = {"group_id": group.id, "now": request.now, "limit": request.limit}
    rows = db.rows(sql.due(request.topics, taken), wanted)
    ranges = [Range(*topic_and_offset(place), count, attempts) for place, count, attempts, *_ in rows]
    return [(Retry(each, *found[3:]), each) for each, found in zip(ranges, rows, strict=True)]

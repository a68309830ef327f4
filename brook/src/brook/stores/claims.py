"""How claims are made, change hands and end. Every function runs in a transaction."""

import itertools
import math
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from brook.claiming import Range, Setback, share_out, take, without
from brook.errors import UnknownTopic
from brook.model import Claimed, Position
from brook.sql import statements as sql
from brook.stores.base import ClaimRequest
from brook.stores.offers import Group, Offer, Retry, find_offer, held, lock_group, lock_lost, lock_receipts, receipts
from brook.stores.places import offset_at, to_place, topic_bounds
from brook.stores.session import Session

ABANDONED = "handed out {} times and never acked: its clients died or let the lease run out"


class Grant(NamedTuple):
    claimed: Claimed
    last_topic: int | None  # of the new messages: the next claim begins behind it


def claim(db: Session, request: ClaimRequest, after: int) -> Grant | None:
    group = lock_group(db, request.group)
    stock, gone = lock_lost(db, group, request.now)
    offer = _bury_exhausted(db, group, find_offer(db, group, request, stock, gone), request)
    lost = list(take(offer.lost, request.limit))
    due = list(take(offer.due, request.limit - _count(lost)))
    left = request.limit - _count(lost) - _count(due)
    new = list(share_out(offer.new, left, after))
    if not lost and not due and not new:
        return None
    owner = (group.id, request.client, request.thread, request.now, request.now + request.lease)
    receipt = db.insert(sql.ADD_RECEIPT, owner)
    _move_lost(db, lost, receipt, request.now)
    _move_due(db, group, due, receipt)
    _add_claims(db, receipt, new)
    db.change(sql.MOVE_PROGRESS, *[(r.end, group.id, r.topic) for r in new])
    messages = request.limit - left + sum(r.messages for r in new)
    return Grant(Claimed(receipt, messages, group.ordered, group.tags), new[-1].topic if new else None)


def ack(db: Session, receipt: int, now: float) -> int:
    messages = _lock_and_count(db, receipt)
    end(db, receipt, now)
    return messages


def end(db: Session, receipt: int, now: float) -> None:
    """Of a claim that nobody else can end meanwhile."""
    db.change(sql.LOG_CLAIM, (now, receipt))
    db.change(sql.DROP_CLAIMS, (receipt,))
    db.change(sql.DROP_RECEIPT, (receipt,))


def renew(db: Session, receipt: int, until: float) -> int:
    messages = _lock_and_count(db, receipt)
    db.change(sql.RENEW, (until, receipt))
    return messages


def _lock_and_count(db: Session, receipt: int) -> int:
    """Nobody else ends this claim or takes it over; how many messages it still holds."""
    _, ((messages,),) = db.gather((sql.these_receipts([receipt]) + db.locking, ()), (sql.CLAIMED_COUNT, (receipt,)))
    return int(messages)


def settle(db: Session, receipt: int, setbacks: Collection[Setback], now: float, finished: bool) -> int:
    group_id = lock_receipts(db, [receipt]).get(receipt)
    if group_id is None:
        return 0
    ranges = held(db, receipt)
    ours = [
        setback._replace(range=part)
        for setback, mine in itertools.product(setbacks, ranges)
        if (part := setback.range.overlap(mine))
    ]
    add_setbacks(db, group_id, ours, now)
    db.change(sql.DROP_CLAIMS, (receipt,))
    _add_claims(db, receipt, without(ranges, [setback.range for setback in ours]))
    if finished:
        for part, due, cause, _ in ours:
            _log_part(db, receipt, part, "dead" if due is None else "refused", cause, now)
        db.change(sql.LOG_CLAIM, (now, receipt))
        db.change(sql.DROP_CLAIMS, (receipt,))
    db.change(sql.DROP_EMPTY_RECEIPT, (receipt,))
    return sum(each.messages for each in ranges)


def reset(db: Session, group: str, topics: Collection[int] | None, position: Position) -> None:
    group_id = lock_group(db, group).id
    followed = {topic for (topic,) in db.rows(sql.FOLLOWED, (group_id,))}
    wanted = followed if topics is None else set(topics)
    if missing := wanted - followed:
        raise UnknownTopic(f"{min(missing)}: group {group!r} does not follow this topic: subscribe it first")
    lock_receipts(db, [receipt.id for receipt in receipts(db, group_id)])
    for topic in wanted:
        _restart(db, group_id, topic, offset_at(db, topic, position))


def _restart(db: Session, group_id: int, topic: int, offset: int) -> None:
    first, end = topic_bounds(topic)
    db.change(sql.MOVE_PROGRESS, (offset, group_id, topic))
    db.change(sql.DROP_CLAIMS_BETWEEN, (group_id, first, end))
    db.change(sql.DROP_EMPTY_RECEIPTS, (group_id,))
    db.change(sql.DROP_RETRIES_BETWEEN, (group_id, first, end))
    db.change(sql.DROP_DEAD_BETWEEN, (group_id, to_place(topic, offset), end))


def add_setbacks(db: Session, group_id: int, setbacks: Iterable[Setback], now: float) -> None:
    for (topic, first, messages, attempts), due, cause, key in setbacks:
        place = to_place(topic, first)
        if due is None:
            db.change(sql.ADD_DEAD, *[(group_id, place + n, attempts, now, cause) for n in range(messages)])
        else:
            db.change(sql.ADD_RETRY, (group_id, place, messages, attempts, due, cause, key))


def _add_claims(db: Session, receipt: int, ranges: Iterable[Range]) -> None:
    db.change(sql.ADD_CLAIM, *[(receipt, to_place(r.topic, r.first), r.messages, r.attempts) for r in ranges])


def _move_lost(db: Session, lost: Sequence[tuple[int, Range, Range]], receipt: int, now: float) -> None:
    for old, taken, rest in lost:
        _log_part(db, old, taken, "lost", "its client died or let the lease run out", now)
        db.change(sql.DROP_CLAIM, (old, to_place(taken.topic, taken.first)))
        _add_claims(db, receipt, [taken._replace(attempts=taken.attempts + 1)])
        _add_claims(db, old, [rest] if rest.messages else [])
    db.change(sql.DROP_EMPTY_RECEIPT, *{(old,) for old, _, _ in lost})


def _move_due(db: Session, group: Group, due: Sequence[tuple[Retry, Range, Range]], receipt: int) -> None:
    for retry, taken, rest in due:
        db.change(sql.DROP_RETRY, (group.id, to_place(taken.topic, taken.first)))
        _add_claims(db, receipt, [taken._replace(attempts=taken.attempts + 1)])
        if rest.messages:
            add_setbacks(db, group.id, [Setback(rest, *retry[1:])], math.nan)


def _bury_exhausted(db: Session, group: Group, offer: Offer, request: ClaimRequest) -> Offer:
    """What was lost after its last attempt is dead, or it would kill one client after the other."""
    limit = request.max_attempts or math.inf
    for receipt, each in offer.lost:
        if each.attempts >= limit:
            cause = ABANDONED.format(each.attempts)
            _log_part(db, receipt, each, "dead", cause, request.now)
            db.change(sql.DROP_CLAIM, (receipt, to_place(each.topic, each.first)))
            db.change(sql.DROP_EMPTY_RECEIPT, (receipt,))
            add_setbacks(db, group.id, [Setback(each, None, cause)], request.now)
    return offer._replace(lost=[(receipt, each) for receipt, each in offer.lost if each.attempts < limit])


def _log_part(db: Session, receipt: int, part: Range, outcome: str, cause: str, now: float) -> None:
    values = {"place": to_place(part.topic, part.first), "count": part.messages, "attempts": part.attempts}
    db.change(sql.LOG_PART, {**values, "receipt": receipt, "outcome": outcome, "cause": cause, "now": now})


def _count(taken: Sequence[tuple[object, Range, Range]]) -> int:
    return sum(part.messages for _, part, _ in taken)

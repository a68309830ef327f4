"""How claims are made, change hands and end. Every function runs in a transaction."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from brook.claiming import Range, Setback, Spread, without
from brook.errors import UnknownTopic
from brook.model import Claimed, Position
from brook.packing import tagged
from brook.sql import statements as sql
from brook.stores.base import ClaimRequest
from brook.stores.dealing import Share, deal
from brook.stores.offers import (
    Group,
    Offer,
    Retry,
    find_offer,
    held,
    lock_group,
    lock_lost,
    lock_receipts,
    receipts,
    take_stock,
)
from brook.stores.places import offset_at, read_ranges, to_place, topic_bounds
from brook.stores.session import Row, Select, Session

ABANDONED = "handed out {} times and never acked: its clients died or let the lease run out"


class Grant(NamedTuple):
    held: list[int]  # messages of each claim that is over
    claimed: list[Claimed]
    last_topic: int | None  # of the new messages: the next claim begins behind it
    buried: int  # messages that are dead now


def ack_and_claim(db: Session, done: Sequence[int], request: ClaimRequest, after: int) -> Grant:
    # The acks first, so that others wait for the group's lock no longer than they have to. Who takes over one of these
    # claims has that lock, and wants ours: then the database lets one of us begin anew.
    held = ack(db, done, request.now) if done else []
    db.lock_groups([request.group])
    stock, gone = lock_lost(db, take_stock(db, request.group), request.now)
    offer, buried = _bury_exhausted(db, stock.group, find_offer(db, request, stock, gone), request)
    shares = list(deal(offer, request, stock.group.ordered, after))
    new = [each for share in shares for each in share.new]
    return Grant(held, _grant(db, stock.group, shares, request), new[-1].topic if new else None, buried)


def _grant(db: Session, group: Group, shares: Sequence[Share], request: ClaimRequest) -> list[Claimed]:
    if not shares:
        return []
    until = request.now + request.lease
    owners = [(group.id, request.client, thread, request.now, until) for thread in request.threads[: len(shares)]]
    granted = list(zip(db.insert(sql.ADD_RECEIPT, *owners), shares, strict=True))
    for receipt, share in granted:
        _move_lost(db, share.lost, receipt, request.now)
        _move_due(db, group, share.due, receipt)
    _add_claims(db, [(receipt, each) for receipt, share in granted for each in share.new])
    ends = {each.topic: each.end for share in shares for each in share.new}
    db.change(sql.MOVE_PROGRESS, *[(end, group.id, topic) for topic, end in ends.items()])
    return [Claimed(receipt, share.messages, group.ordered, group.tags) for receipt, share in granted]


def ack(db: Session, receipts: Sequence[int], now: float) -> list[int]:
    return held_by(receipts, db.gather(*ending(db, receipts, now))[COUNTED])


COUNTED = 0  # which statement of `ending` tells what is held


def ending(db: Session, receipts: Sequence[int], now: float) -> list[Select]:
    """What ends these claims: nobody else does meanwhile, or takes them over."""
    count = len(receipts)
    return [
        (sql.claimed_counts(count, db.by_key) + db.locking, receipts),
        (sql.log_claims(count), (now, *receipts)),
        *db.dropping(receipts),
    ]


def held_by(receipts: Sequence[int], counts: Sequence[Row]) -> list[int]:
    """How many messages each held; a second ack of one that comes along is for nothing."""
    held: Counter[int] = Counter()
    for receipt, count in counts:
        held[receipt] += count or 0
    return [held.pop(receipt, 0) for receipt in receipts]


def renew(db: Session, receipt: int, until: float) -> int:
    counts = db.rows(sql.claimed_counts(1, db.by_key) + db.locking, (receipt,))
    db.change(sql.RENEW, (until, receipt))
    return held_by([receipt], counts)[0]


def settle(db: Session, receipt: int, setbacks: Collection[Setback], now: float, finished: bool) -> int:
    group_id = lock_receipts(db, [receipt]).get(receipt)
    if group_id is None:
        return 0
    ranges = held(db, [receipt])[receipt]
    spread = Spread(ranges)
    ours = [
        setback._replace(range=part)
        for setback in setbacks
        for mine in spread.touching(setback.range)
        if (part := setback.range.overlap(mine))
    ]
    add_setbacks(db, group_id, ours, now)
    db.change(sql.DROP_CLAIMS, (receipt,))
    _add_claims(db, [(receipt, left) for left in without(ranges, [setback.range for setback in ours])])
    if finished:
        for part, due, cause, _ in ours:
            _log_part(db, receipt, part, "dead" if due is None else "refused", cause, now)
        db.change(sql.log_claims(1), (now, receipt))
        db.change(sql.DROP_CLAIMS, (receipt,))
    db.change(sql.DROP_EMPTY_RECEIPT, (receipt,))
    return sum(each.messages for each in ranges)


def reset(db: Session, group: str, topics: Collection[int] | None, position: Position) -> None:
    group_id = lock_group(db, group).id
    followed = {topic for (topic,) in db.rows(sql.FOLLOWED, (group_id,))}
    wanted = followed if topics is None else set(topics)
    if missing := wanted - followed:
        raise UnknownTopic(f"{min(missing)}: group {group!r} does not follow this topic: subscribe it first")
    lock_receipts(db, [receipt.id for receipt in receipts(db, group)])
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
    dead: list[Row] = []
    again: list[Row] = []
    for (topic, first, messages, attempts), due, cause, key in setbacks:
        place = to_place(topic, first)
        if due is None:
            dead += [(group_id, place + n, attempts, now, cause) for n in range(messages)]
        else:
            again.append((group_id, place, messages, attempts, due, cause, key))
    db.change(sql.ADD_DEAD, *dead)
    db.change(sql.ADD_RETRY, *again)


def _add_claims(db: Session, ranges: Iterable[tuple[int, Range]]) -> None:
    """By receipt."""
    rows = [(receipt, to_place(r.topic, r.first), r.messages, r.attempts) for receipt, r in ranges]
    db.change(sql.ADD_CLAIM, *rows)


def _move_lost(db: Session, lost: Sequence[tuple[int, Range, Range]], receipt: int, now: float) -> None:
    for old, taken, rest in lost:
        _log_part(db, old, taken, "lost", "its client died or let the lease run out", now)
        db.change(sql.DROP_CLAIM, (old, to_place(taken.topic, taken.first)))
        _add_claims(db, [(receipt, taken._replace(attempts=taken.attempts + 1))])
        _add_claims(db, [(old, rest)] if rest.messages else [])
    db.change(sql.DROP_EMPTY_RECEIPT, *{(old,) for old, _, _ in lost})


def _move_due(db: Session, group: Group, due: Sequence[tuple[Retry, Range, Range]], receipt: int) -> None:
    db.change(sql.DROP_RETRY, *[(group.id, to_place(taken.topic, taken.first)) for _, taken, _ in due])
    _add_claims(db, [(receipt, taken._replace(attempts=taken.attempts + 1)) for _, taken, _ in due])
    add_setbacks(db, group.id, [Setback(rest, *retry[1:]) for retry, _, rest in due if rest.messages], math.nan)


def _bury_exhausted(db: Session, group: Group, offer: Offer, request: ClaimRequest) -> tuple[Offer, int]:
    """What was lost after its last attempt is dead, or it would kill one client after the other; the rest, how many."""
    limit, buried = request.max_attempts or math.inf, 0
    for receipt, each in offer.lost:
        if each.attempts >= limit:
            cause = ABANDONED.format(each.attempts)
            died = [Setback(part, None, cause) for part in _wanted(db, group, each)]
            for setback in died:
                _log_part(db, receipt, setback.range, "dead", cause, request.now)
            db.change(sql.DROP_CLAIM, (receipt, to_place(each.topic, each.first)))
            db.change(sql.DROP_EMPTY_RECEIPT, (receipt,))
            add_setbacks(db, group.id, died, request.now)
            buried += sum(setback.range.messages for setback in died)
    return offer._replace(lost=[(receipt, each) for receipt, each in offer.lost if each.attempts < limit]), buried


def _wanted(db: Session, group: Group, claimed: Range) -> list[Range]:
    """What of it the group has tags for: its clients never saw the rest."""
    if not group.tags:
        return [claimed]
    parts = [part for piece in read_ranges(db, [claimed]) for part in tagged(piece, frozenset(group.tags))]
    return [claimed._replace(first=part.first, messages=part.messages) for part in parts]


def _log_part(db: Session, receipt: int, part: Range, outcome: str, cause: str, now: float) -> None:
    values = {"place": to_place(part.topic, part.first), "count": part.messages, "attempts": part.attempts}
    db.change(sql.LOG_PART, {**values, "receipt": receipt, "outcome": outcome, "cause": cause, "now": now})

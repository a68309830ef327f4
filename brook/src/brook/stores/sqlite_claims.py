"""Claims in SQLite: what there is to claim, and how it changes hands. Every function runs in a transaction."""

import itertools
import json
import math
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from brook.claiming import Range, Setback, without
from brook.errors import UnknownGroup
from brook.identity import is_dead
from brook.sql import sqlite as sql
from brook.stores.base import ClaimRequest
from brook.stores.sqlite_places import require_readable, to_place, topic_and_offset, topic_bounds, unreadable

ABANDONED = "handed out {} times and never acked: its clients died or let the lease run out"


class Group(NamedTuple):
    id: int
    ordered: bool
    tags: tuple[str, ...]


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

    version: int
    unclaimed: bool
    receipts: list[Receipt]
    next_due: float

    def is_empty(self, now: float) -> bool:
        return not self.unclaimed and self.next_due > now and not any(r.is_lost(now) for r in self.receipts)


def find_group(db: sqlite3.Connection, name: str) -> Group:
    row = db.execute(sql.GROUP, (name,)).fetchone()
    if row is None:
        raise UnknownGroup(f"{name!r}: no such group: subscribe it first")
    return Group(row[0], bool(row[1]), tuple(json.loads(row[2])))


def look(db: sqlite3.Connection, version: int, request: ClaimRequest) -> Outlook:
    group = find_group(db, request.group)
    (next_due,) = db.execute(sql.NEXT_DUE, (group.id,)).fetchone()
    offer = find_offer(db, group, request)
    return Outlook(version, bool(offer.new), receipts(db, group), math.inf if next_due is None else next_due)


def find_offer(db: sqlite3.Connection, group: Group, request: ClaimRequest) -> Offer:
    require_readable(db, request.topics or ())
    out = receipts(db, group)
    gone = [receipt for receipt in out if receipt.is_lost(request.now)]
    # In an ordered group a topic that somebody has is nobody else's.
    kept = [receipt for receipt in out if receipt not in gone] if group.ordered else []
    taken = unreadable(db) | {each.topic for receipt in kept for each in held(db, receipt.id)}

    def is_open(each: Range) -> bool:
        return each.topic not in taken and (request.topics is None or each.topic in request.topics)

    lost = [(receipt.id, each) for receipt in gone for each in held(db, receipt.id) if is_open(each)]
    new = [Range(*row) for row in db.execute(sql.READY, (group.id,)).fetchall()]
    return Offer(lost, _due(db, group, request, taken), [each for each in new if is_open(each)])


def receipts(db: sqlite3.Connection, group: Group) -> list[Receipt]:
    return [Receipt(*row) for row in db.execute(sql.RECEIPTS, (group.id,)).fetchall()]


def held(db: sqlite3.Connection, receipt: int) -> list[Range]:
    rows = db.execute(sql.CLAIMS, (receipt,)).fetchall()
    return [Range(*topic_and_offset(place), count, attempts) for place, count, attempts in rows]


def _due(
    db: sqlite3.Connection, group: Group, request: ClaimRequest, taken: Collection[int]
) -> list[tuple[Retry, Range]]:
    wanted = {
        "group_id": group.id,
        "now": request.now,
        "limit": request.limit,
        "topics": None if request.topics is None else json.dumps(list(request.topics)),
        "taken": json.dumps(list(taken)),
    }
    rows = db.execute(sql.DUE, wanted).fetchall()
    ranges = [Range(*topic_and_offset(place), count, attempts) for place, count, attempts, *_ in rows]
    return [(Retry(each, *row[3:]), each) for each, row in zip(ranges, rows, strict=True)]


def add_claims(db: sqlite3.Connection, receipt: int, ranges: Iterable[Range]) -> None:
    db.executemany(sql.ADD_CLAIM, [(receipt, to_place(r.topic, r.first), r.messages, r.attempts) for r in ranges])


def move_lost(db: sqlite3.Connection, lost: Sequence[tuple[int, Range, Range]], receipt: int, now: float) -> None:
    for old, taken, rest in lost:
        log_part(db, old, taken, "lost", "its client died or let the lease run out", now)
        db.execute(sql.DROP_CLAIM, (old, to_place(taken.topic, taken.first)))
        add_claims(db, receipt, [taken._replace(attempts=taken.attempts + 1)])
        add_claims(db, old, [rest] if rest.messages else [])
    db.executemany(sql.DROP_EMPTY_RECEIPT, {(old,) for old, _, _ in lost})


def move_due(db: sqlite3.Connection, group: Group, due: Sequence[tuple[Retry, Range, Range]], receipt: int) -> None:
    for retry, taken, rest in due:
        db.execute(sql.DROP_RETRY, (group.id, to_place(taken.topic, taken.first)))
        add_claims(db, receipt, [taken._replace(attempts=taken.attempts + 1)])
        if rest.messages:
            add_setbacks(db, group.id, [Setback(rest, *retry[1:])], math.nan)


def bury_exhausted(db: sqlite3.Connection, group: Group, offer: Offer, request: ClaimRequest) -> Offer:
    """What was lost after its last attempt is dead, or it would kill one client after the other."""
    limit = request.max_attempts or math.inf
    for receipt, each in offer.lost:
        if each.attempts >= limit:
            log_part(db, receipt, each, "dead", ABANDONED.format(each.attempts), request.now)
            db.execute(sql.DROP_CLAIM, (receipt, to_place(each.topic, each.first)))
            db.execute(sql.DROP_EMPTY_RECEIPT, (receipt,))
            add_setbacks(db, group.id, [Setback(each, None, ABANDONED.format(each.attempts))], request.now)
    return offer._replace(lost=[(receipt, each) for receipt, each in offer.lost if each.attempts < limit])


def settle(
    db: sqlite3.Connection, group_id: int, receipt: int, setbacks: Collection[Setback], now: float, finished: bool
) -> int:
    ranges = held(db, receipt)
    ours = [
        setback._replace(range=part)
        for setback, mine in itertools.product(setbacks, ranges)
        if (part := setback.range.overlap(mine))
    ]
    add_setbacks(db, group_id, ours, now)
    db.execute(sql.DROP_CLAIMS, (receipt,)).fetchall()
    add_claims(db, receipt, without(ranges, [setback.range for setback in ours]))
    if finished:
        for part, due, cause, _ in ours:
            log_part(db, receipt, part, "dead" if due is None else "refused", cause, now)
        db.execute(sql.LOG_CLAIM, (receipt, now))
        db.execute(sql.DROP_CLAIMS, (receipt,)).fetchall()
    db.execute(sql.DROP_EMPTY_RECEIPT, (receipt,))
    return sum(each.messages for each in ranges)


def log_part(db: sqlite3.Connection, receipt: int, part: Range, outcome: str, cause: str, now: float) -> None:
    row = {"place": to_place(part.topic, part.first), "count": part.messages, "attempts": part.attempts}
    db.execute(sql.LOG_PART, {**row, "receipt": receipt, "outcome": outcome, "cause": cause, "now": now})


def add_setbacks(db: sqlite3.Connection, group_id: int, setbacks: Iterable[Setback], now: float) -> None:
    for (topic, first, messages, attempts), due, cause, key in setbacks:
        place = to_place(topic, first)
        if due is None:
            dead = [(group_id, place + n, attempts, now, cause) for n in range(messages)]
            db.executemany(sql.ADD_DEAD, dead)
        else:
            db.execute(sql.ADD_RETRY, (group_id, place, messages, attempts, due, cause, key))


def restart(db: sqlite3.Connection, group_id: int, topic: int, offset: int) -> None:
    first, end = topic_bounds(topic)
    db.execute(sql.MOVE_PROGRESS, (group_id, topic, offset))
    db.execute(sql.DROP_CLAIMS_BETWEEN, (group_id, first, end))
    db.execute(sql.DROP_EMPTY_RECEIPTS, (group_id,))
    db.execute(sql.DROP_RETRIES_BETWEEN, (group_id, first, end))
    db.execute(sql.DROP_DEAD_BETWEEN, (group_id, to_place(topic, offset), end))

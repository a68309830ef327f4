"""The queue in a SQLite file.

How the rules of `base` are kept: SQLite has one write lock for the whole database. Every change here is
one transaction that takes it at the beginning (BEGIN IMMEDIATE) and holds it until its commit, so that
changes happen one after the other, in the order of their commits. Reading bodies needs no lock: what is
claimed does not change.
"""

import json
import sqlite3
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from brook.claiming import Range, share_out, take
from brook.errors import UnknownGroup, UnknownTopic
from brook.identity import is_dead
from brook.model import Claimed, Durability, Start
from brook.packing import Piece, Run, cut
from brook.sql import sqlite as sql
from brook.stores.base import ClaimRequest
from brook.stores.sqlite_database import PAGE, Database

_OFFSET_MASK = (1 << sql.OFFSET_BITS) - 1


class _Receipt(NamedTuple):
    id: int
    client: str
    expires: float

    def is_lost(self, now: float) -> bool:
        return self.expires <= now or is_dead(self.client)


class _Outlook(NamedTuple):
    """What there was to claim when the database was last looked at."""

    version: int
    unclaimed: bool
    receipts: list[_Receipt]


class SqliteStore:
    def __init__(self, path: Path, *, durability: Durability = "full", patience: float = 5.0) -> None:
        self._database = Database(path, durability=durability, patience=patience)
        self._turns: dict[str, int] = {}  # by group: the topic that was claimed from last
        self._outlooks: dict[tuple[str, frozenset[int] | None], _Outlook] = {}

    def topics(self) -> dict[str, int]:
        with self._database.reading() as db:
            return dict(db.execute(sql.ALL_TOPICS).fetchall())

    def create_topics(self, names: Collection[str]) -> None:
        with self._database.writing() as db:
            db.executemany(sql.ADD_TOPIC, [(name,) for name in names])
            db.execute(sql.FOLLOW_NEW_TOPICS)

    def append(self, runs: Sequence[Run], now: float) -> list[int]:
        with self._database.writing(_logged(runs)) as db:
            nexts = _next_offsets(db, {run.topic for run in runs})
            last_body = nexts.pop(0)
            firsts = []
            for run in runs:
                firsts.append(nexts[run.topic])
                nexts[run.topic] += run.messages
            ids = range(last_body + 1, last_body + 1 + len(runs))
            sent = int(now * 1000)
            db.executemany(sql.ADD_BODY, [(i, r.data, r.sizes, r.extras) for i, r in zip(ids, runs, strict=True)])
            db.executemany(
                sql.ADD_RUN,
                [(_place(r.topic, f), r.messages, sent, i) for i, f, r in zip(ids, firsts, runs, strict=True)],
            )
            db.executemany(sql.MOVE_NEXT_OFFSET, nexts.items())
        return firsts

    def subscribe(self, group: str, topics: Collection[int] | None, start: Start) -> None:
        with self._database.writing() as db:
            known = {topic for _, topic in db.execute(sql.ALL_TOPICS)}
            wanted = known if topics is None else set(topics)
            _require_none_missing(wanted - known)
            (group_id,) = db.execute(sql.ADD_GROUP, (group, topics is None)).fetchone()
            at_end = start == "latest"
            db.execute(
                sql.FOLLOW_TOPICS,
                {"group_id": group_id, "at_end": at_end, "topics": json.dumps(list(wanted))},
            )

    def claim(self, request: ClaimRequest) -> Claimed | None:
        if self._nothing_to_claim(request):
            return None
        with self._database.writing() as db:
            group_id = _group_id(db, request.group)
            lost = list(take(_lost_claims(db, group_id, request), request.limit))
            left = request.limit - sum(taken.messages for _, taken, _ in lost)
            new = list(share_out(_ready(db, group_id, request), left, self._turns.get(request.group, 0)))
            if not lost and not new:  # somebody else was faster
                return None
            expires = request.now + request.lease
            (receipt,) = db.execute(sql.ADD_RECEIPT, (group_id, request.client, expires)).fetchone()
            _move_claims(db, lost, receipt)
            _add_claims(db, receipt, new)
            db.executemany(sql.MOVE_PROGRESS, [(group_id, r.topic, r.first + r.messages) for r in new])
        if new:
            self._turns[request.group] = new[-1].topic
        return Claimed(receipt, request.limit - left + sum(r.messages for r in new))

    def read(self, receipt: int) -> list[Piece]:
        with self._database.reading() as db:
            return [_piece(row) for row in db.execute(sql.CLAIMED_RUNS, (receipt,)).fetchall()]

    def ack(self, receipt: int) -> int:
        with self._database.writing() as db:
            dropped: list[tuple[int]] = db.execute(sql.DROP_CLAIMS, (receipt,)).fetchall()
            db.execute(sql.DROP_RECEIPT, (receipt,))
        return sum(messages for (messages,) in dropped)

    def renew(self, receipt: int, until: float) -> int:
        with self._database.writing() as db:
            db.execute(sql.RENEW, (receipt, until))
            return int(db.execute(sql.CLAIMED_COUNT, (receipt,)).fetchone()[0])

    def hand_back(self, client: str) -> None:
        with self._database.writing() as db:
            db.execute(sql.EXPIRE_ALL_OF, (client,))

    def lag(self, group: str) -> int:
        with self._database.reading() as db:
            row = db.execute(sql.LAG, {"group_id": _group_id(db, group)}).fetchone()
        return int(row[0])

    def close(self) -> None:
        self._database.close()

    def _nothing_to_claim(self, request: ClaimRequest) -> bool:
        """Found out without the write lock and, as long as nobody commits anything, without a query."""
        key = request.group, request.topics
        with self._database.reading() as db:
            # The version first: what is committed from here on changes it again.
            (version,) = db.execute(sql.DATA_VERSION).fetchone()
            outlook = self._outlooks.get(key)
            if outlook is None or outlook.version != version:
                outlook = self._outlooks[key] = _look(db, version, request)
        return not outlook.unclaimed and not any(r.is_lost(request.now) for r in outlook.receipts)


def _look(db: sqlite3.Connection, version: int, request: ClaimRequest) -> _Outlook:
    group_id = _group_id(db, request.group)
    return _Outlook(version, bool(_ready(db, group_id, request)), _receipts(db, group_id))


def _group_id(db: sqlite3.Connection, group: str) -> int:
    row = db.execute(sql.GROUP_ID, (group,)).fetchone()
    if row is None:
        raise UnknownGroup(f"{group!r}: no such group: subscribe it first")
    return int(row[0])


def _next_offsets(db: sqlite3.Connection, topics: set[int]) -> dict[int, int]:
    """And the last body's id, as the next offset of topic 0."""
    nexts = dict(db.execute(sql.NEXT_OFFSETS, (str(list(topics)),)).fetchall())
    _require_none_missing(topics - nexts.keys())
    return nexts


def _require_none_missing(topics: set[int]) -> None:
    if topics:
        raise UnknownTopic(f"{min(topics)}: no topic has this id: use those that create_topics() returned")


def _ready(db: sqlite3.Connection, group_id: int, request: ClaimRequest) -> list[Range]:
    rows = db.execute(sql.READY, (group_id,)).fetchall()
    return [Range(*row) for row in rows if request.topics is None or row[0] in request.topics]


def _receipts(db: sqlite3.Connection, group_id: int) -> list[_Receipt]:
    return [_Receipt(*row) for row in db.execute(sql.RECEIPTS, (group_id,)).fetchall()]


def _lost_claims(db: sqlite3.Connection, group_id: int, request: ClaimRequest) -> list[tuple[int, Range]]:
    return [
        (receipt.id, Range(*_topic_and_offset(place), count, attempts))
        for receipt in _receipts(db, group_id)
        if receipt.is_lost(request.now)
        for place, count, attempts in db.execute(sql.CLAIMS, (receipt.id,)).fetchall()
        if request.topics is None or place >> sql.OFFSET_BITS in request.topics
    ]


def _move_claims(db: sqlite3.Connection, lost: list[tuple[int, Range, Range]], receipt: int) -> None:
    for old, taken, rest in lost:
        db.execute(sql.DROP_CLAIM, (old, _place(taken.topic, taken.first)))
        _add_claims(db, receipt, [taken._replace(attempts=taken.attempts + 1)])
        _add_claims(db, old, [rest] if rest.messages else [])
    db.executemany(sql.DROP_EMPTY_RECEIPT, {(old,) for old, _, _ in lost})


def _add_claims(db: sqlite3.Connection, receipt: int, ranges: list[Range]) -> None:
    db.executemany(sql.ADD_CLAIM, [(receipt, _place(r.topic, r.first), r.messages, r.attempts) for r in ranges])


def _piece(row: tuple[Any, ...]) -> Piece:
    """From a row of CLAIMED_RUNS: the part of the run that is claimed."""
    claim, claimed, attempts, place, count, sent, data, sizes, extras = row
    topic, first = _topic_and_offset(place)
    begin = claim & _OFFSET_MASK
    stored = Piece(topic, first, count, attempts, sent, data, sizes, extras and json.loads(extras))
    return cut(stored, begin, begin + claimed)


def _place(topic: int, offset: int) -> int:
    return topic << sql.OFFSET_BITS | offset


def _topic_and_offset(place: int) -> tuple[int, int]:
    return place >> sql.OFFSET_BITS, place & _OFFSET_MASK


def _logged(runs: Sequence[Run]) -> int:
    """About what these add to the log: their bodies, and a page or so of the index for each."""
    return sum(len(run.data) for run in runs) + PAGE * (len(runs) + 4)

"""The queue in a SQLite file.

How the rules of `base` are kept: SQLite has one write lock for the whole database. Every change here is
one transaction that takes it at the beginning (BEGIN IMMEDIATE) and holds it until its commit, so that
changes happen one after the other, in the order of their commits. Reading bodies needs no lock: what is
claimed does not change.
"""

import json
from collections.abc import Collection, Sequence
from pathlib import Path

from brook.claiming import Range, Setback, share_out, take
from brook.errors import UnknownTopic
from brook.model import Claimed, Durability, Position, Rule
from brook.packing import Piece, Run
from brook.sql import sqlite as sql
from brook.states import ClientState, GroupState, TopicState, Trace
from brook.stores import sqlite_claims as claims
from brook.stores import sqlite_labels as labels
from brook.stores import sqlite_retention as retention
from brook.stores import sqlite_watching as watching
from brook.stores import sqlite_writing as writing
from brook.stores.base import ClaimRequest, Cleaned, Death, Waiting, Writer
from brook.stores.sqlite_database import PAGE, Database
from brook.stores.sqlite_places import (
    offset_at,
    require_readable,
    to_piece,
    to_place,
    topic_and_offset,
    topic_bounds,
)


class SqliteStore:
    def __init__(self, path: Path, *, durability: Durability = "full", patience: float = 5.0) -> None:
        self._database = Database(path, durability=durability, patience=patience)
        self._turns: dict[str, int] = {}  # by group: the topic that was claimed from last
        self._outlooks: dict[tuple[str, frozenset[int] | None], claims.Outlook] = {}

    def topics(self) -> dict[str, int]:
        with self._database.reading() as db:
            return writing.topics(db)

    def create_topics(self, names: Collection[str]) -> None:
        with self._database.writing() as db:
            writing.create_topics(db, names)

    def rules(self) -> dict[int, Rule]:
        with self._database.reading() as db:
            return dict(db.execute(sql.RULES).fetchall())

    def set_rule(self, topic: int, rule: Rule) -> None:
        with self._database.writing() as db:
            db.execute(sql.SET_RULE, (topic, rule))

    def append(self, runs: Sequence[Run], now: float) -> list[int]:
        with self._database.writing(_logged(runs)) as db:
            return writing.append(db, runs, now)

    def within(self, connection: object) -> Writer:
        return writing.CallersTransaction(self._database, connection)

    def subscribe(
        self,
        group: str,
        topics: Collection[int] | None,
        start: Position,
        *,
        ordered: bool | None = None,
        tags: Collection[str] | None = None,
    ) -> None:
        options = {"ordered": ordered, "tags": None if tags is None else json.dumps(list(tags))}
        with self._database.writing() as db:
            known = {topic for _, topic in db.execute(sql.ALL_TOPICS)}
            wanted = known if topics is None else set(topics)
            writing.require_none_missing(wanted - known)
            row = {"name": group, "follows_all": topics is None, **options}
            (group_id,) = db.execute(sql.ADD_GROUP, row).fetchone()
            new = wanted - {topic for (topic,) in db.execute(sql.FOLLOWED, (group_id,))}
            db.executemany(sql.FOLLOW, [(group_id, topic, offset_at(db, topic, start)) for topic in new])

    def reset(self, group: str, topics: Collection[int] | None, position: Position) -> None:
        with self._database.writing() as db:
            group_id = claims.find_group(db, group).id
            followed = {topic for (topic,) in db.execute(sql.FOLLOWED, (group_id,))}
            wanted = followed if topics is None else set(topics)
            if missing := wanted - followed:
                raise UnknownTopic(f"{min(missing)}: group {group!r} does not follow this topic: subscribe it first")
            for topic in wanted:
                claims.restart(db, group_id, topic, offset_at(db, topic, position))

    def offset_at(self, topic: int, position: Position) -> int:
        with self._database.reading() as db:
            require_readable(db, {topic})
            return offset_at(db, topic, position)

    def scan(self, topic: int, first: int, end: int | None, *, runs: int, label: str | None = None) -> list[Piece]:
        begin, last = to_place(topic, first), topic_bounds(topic)[1] if end is None else to_place(topic, end)
        with self._database.reading() as db:
            require_readable(db, {topic})
            if label is not None:
                return labels.find(db, label, begin, min(last, to_place(topic, offset_at(db, topic, "latest"))), runs)
            wanted = {"first": begin, "end": last, "runs": runs}
            return [to_piece(row) for row in db.execute(sql.RUNS_BETWEEN, wanted).fetchall()]

    def claim(self, request: ClaimRequest) -> Claimed | None:
        if self._nothing_to_claim(request):
            return None
        with self._database.writing() as db:
            group = claims.find_group(db, request.group)
            offer = claims.bury_exhausted(db, group, claims.find_offer(db, group, request), request)
            lost = list(take(offer.lost, request.limit))
            due = list(take(offer.due, request.limit - _count(lost)))
            left = request.limit - _count(lost) - _count(due)
            new = list(share_out(offer.new, left, self._turns.get(request.group, 0)))
            if not lost and not due and not new:  # somebody else was faster
                return None
            owner = (group.id, request.client, request.thread, request.now, request.now + request.lease)
            (receipt,) = db.execute(sql.ADD_RECEIPT, owner).fetchone()
            claims.move_lost(db, lost, receipt, request.now)
            claims.move_due(db, group, due, receipt)
            claims.add_claims(db, receipt, new)
            db.executemany(sql.MOVE_PROGRESS, [(group.id, r.topic, r.end) for r in new])
        if new:
            self._turns[request.group] = new[-1].topic
        messages = request.limit - left + sum(r.messages for r in new)
        return Claimed(receipt, messages, group.ordered, group.tags)

    def read(self, receipt: int) -> list[Piece]:
        with self._database.reading() as db:
            return [to_piece(row) for row in db.execute(sql.CLAIMED_RUNS, (receipt,)).fetchall()]

    def ack(self, receipt: int, now: float) -> int:
        with self._database.writing() as db:
            db.execute(sql.LOG_CLAIM, (receipt, now))
            dropped: list[tuple[int]] = db.execute(sql.DROP_CLAIMS, (receipt,)).fetchall()
            db.execute(sql.DROP_RECEIPT, (receipt,))
        return sum(messages for (messages,) in dropped)

    def settle(self, receipt: int, setbacks: Sequence[Setback], now: float, *, finished: bool) -> int:
        with self._database.writing() as db:
            row = db.execute(sql.RECEIPT_GROUP, (receipt,)).fetchone()
            return claims.settle(db, row[0], receipt, setbacks, now, finished) if row else 0

    def waiting_keys(self, receipt: int) -> dict[tuple[int, str], Waiting]:
        with self._database.reading() as db:
            rows = db.execute(sql.WAITING_KEYS, (receipt,)).fetchall()
        places = [(*topic_and_offset(place), key, due) for place, key, due in rows]
        # From the last to the first, which stays.
        return {(topic, key): Waiting(offset, due) for topic, offset, key, due in places}

    def renew(self, receipt: int, until: float) -> int:
        with self._database.writing() as db:
            db.execute(sql.RENEW, (receipt, until))
            return int(db.execute(sql.CLAIMED_COUNT, (receipt,)).fetchone()[0])

    def hand_back(self, client: str) -> None:
        with self._database.writing() as db:
            db.execute(sql.EXPIRE_ALL_OF, (client,))
            db.execute(sql.LEAVE, (client,))

    def beat(self, client: str, group: str, threads: int, now: float) -> None:
        with self._database.writing() as db:
            db.execute(sql.BEAT, (client, claims.find_group(db, group).id, threads, now))

    def lag(self, group: str) -> int:
        with self._database.reading() as db:
            row = db.execute(sql.LAG, {"group_id": claims.find_group(db, group).id}).fetchone()
        return int(row[0])

    def dead(self, group: str, limit: int) -> list[Death]:
        with self._database.reading() as db:
            rows = db.execute(sql.DEAD, (claims.find_group(db, group).id, 0, limit)).fetchall()
        return [Death(Range(*topic_and_offset(place), 1, attempts), *rest) for place, attempts, *rest in rows]

    def replay_dead(self, group: str, messages: Collection[tuple[int, int]], now: float) -> int:
        with self._database.writing() as db:
            group_id = claims.find_group(db, group).id
            there = [each for each in messages if db.execute(sql.DROP_DEAD, (group_id, to_place(*each))).rowcount]
            again = [Setback(Range(*each, 1, attempts=0), now, "replayed") for each in there]
            claims.add_setbacks(db, group_id, again, now)
        return len(there)

    def drop_dead(self, group: str, messages: Collection[tuple[int, int]]) -> int:
        with self._database.writing() as db:
            group_id = claims.find_group(db, group).id
            return sum(db.execute(sql.DROP_DEAD, (group_id, to_place(*each))).rowcount for each in messages)

    def stored_bytes(self, topic: int) -> int:
        with self._database.reading() as db:
            return int(db.execute(sql.STORED_BYTES, topic_bounds(topic)).fetchone()[0])

    def clean(self, topic: int, first: int, before: float, excess: int, *, runs: int) -> Cleaned:
        with self._database.writing(PAGE * (runs + 4)) as db:
            return retention.clean(db, topic, first, before, excess, runs)

    def skip_deleted(self, group: str) -> None:
        with self._database.writing() as db:
            retention.skip_deleted(db, claims.find_group(db, group).id)

    def settings(self) -> dict[str, str]:
        with self._database.reading() as db:
            return dict(db.execute(sql.SETTINGS).fetchall())

    def set_setting(self, name: str, value: str | None) -> None:
        with self._database.writing() as db:
            if value is None:
                db.execute(sql.DROP_SETTING, (name,))
            else:
                db.execute(sql.SET_SETTING, (name, value))

    def topic_states(self, since: float) -> list[TopicState]:
        with self._database.reading() as db:
            return watching.topic_states(db, since)

    def group_states(self) -> list[GroupState]:
        with self._database.reading() as db:
            return [GroupState(*row) for row in db.execute(sql.GROUP_STATES).fetchall()]

    def client_states(self) -> list[ClientState]:
        with self._database.reading() as db:
            return watching.client_states(db)

    def trace(self, topic: int, offset: int) -> Trace:
        with self._database.reading() as db:
            return watching.trace(db, topic, offset)

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
                outlook = self._outlooks[key] = claims.look(db, version, request)
        return outlook.is_empty(request.now)


def _count(taken: Sequence[tuple[object, Range, Range]]) -> int:
    return sum(part.messages for _, part, _ in taken)


def _logged(runs: Sequence[Run]) -> int:
    """About what these add to the log: their bodies, and a page or so of the index for each."""
    return sum(len(run.data) for run in runs) + PAGE * (len(runs) + 4)

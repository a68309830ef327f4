"""The queue in a SQL database, whichever it is: each method is one transaction, or a look without one.

How the rules of `base` are kept is said by the databases; what they need to be told is what to lock, and when.
Locks are taken in the order catalogue, group, receipt, but by acks that go with a claim: they come first. Topics are
locked by those alone who lock nothing else.
"""

import math
from collections.abc import Callable, Collection, Sequence

from brook.alerts import Alert
from brook.claiming import Range, Setback
from brook.model import Claimed, Position, Rule
from brook.packing import Piece
from brook.sql import statements as sql
from brook.states import AlertCount, ClientState, GroupState, ListenerState, TopicState, Trace
from brook.stores import claims, labels, offers, retention, watching, writing
from brook.stores.base import ClaimRequest, Cleaned, Death, ListenerPlace, Waiting
from brook.stores.places import (
    offset_at,
    read_ranges,
    read_together,
    require_readable,
    to_place,
    topic_and_offset,
    topic_bounds,
)
from brook.stores.session import PAGE, Database, Result, Session

_ALL_PLACES = (0, (1 << 63) - 1)
LOOK_EVERY = 1.0  # seconds, at most, between two looks for what has no place yet


class SqlStore:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._turns: dict[str, int] = {}  # by group: the topic that was claimed from last
        # What the last claim got something of, and when we had looked before.
        self._plenty: dict[tuple[str, frozenset[int] | None], float] = {}
        self._outlooks: dict[tuple[str, frozenset[int] | None], offers.Outlook] = {}

    def topics(self) -> dict[str, int]:
        return self._database.read(writing.topics)

    def create_topics(self, names: Collection[str]) -> None:
        self._database.write(lambda db: writing.create_topics(db, names))

    def rules(self) -> dict[int, Rule]:
        return dict(self._database.read(lambda db: db.rows(sql.RULES)))

    def set_rule(self, topic: int, rule: Rule) -> None:
        self._database.write(lambda db: db.change(sql.SET_RULE, (rule, topic)))

    def subscribe(
        self,
        group: str,
        topics: Collection[int] | None,
        start: Position,
        *,
        ordered: bool | None = None,
        tags: Collection[str] | None = None,
    ) -> None:
        self._admit()
        self._database.write(lambda db: writing.subscribe(db, group, topics, start, ordered, tags))

    def reset(self, group: str, topics: Collection[int] | None, position: Position) -> None:
        self._admit()
        self._database.write(lambda db: claims.reset(db, group, topics, position))

    def offset_at(self, topic: int, position: Position) -> int:
        def look(db: Session) -> int:
            require_readable(db, topic)
            return offset_at(db, topic, position)

        return self._look(look)

    def scan(self, topic: int, first: int, end: int | None, *, runs: int, label: str | None = None) -> list[Piece]:
        def look(db: Session) -> list[Piece]:
            require_readable(db, topic)
            last = offset_at(db, topic, "latest" if end is None else end)
            wanted = Range(topic, first, max(last - first, 0), attempts=0)
            return read_ranges(db, [wanted], runs) if label is None else labels.find(db, label, wanted, runs)

        return self._look(look)

    def claim(self, request: ClaimRequest) -> list[Claimed]:
        return self.ack_and_claim([], request)[1]

    def read(self, receipts: Sequence[int]) -> list[list[Piece]]:
        def look(db: Session) -> list[list[Piece]]:
            held = offers.held(db, receipts)
            return read_together(db, [held[receipt] for receipt in receipts])

        return self._database.read(look)

    def ack(self, receipts: Sequence[int], now: float) -> list[int]:
        return self._database.write(lambda db: claims.ack(db, receipts, now)) if receipts else []

    def ack_and_claim(self, receipts: Sequence[int], request: ClaimRequest) -> tuple[list[int], list[Claimed]]:
        # Where there was something, there may be more; else a look is cheaper. Now and then in any case: what waits for
        # its place must not wait until there is nothing else.
        key = request.group, request.topics
        looked = self._plenty.get(key, -math.inf)
        if abs(request.now - looked) > LOOK_EVERY:
            looked = request.now
            self._admit()
            if self._nothing_to_claim(request):
                return self.ack(receipts, request.now), []
        after = self._turns.get(request.group, 0)
        grant = self._database.write(lambda db: claims.ack_and_claim(db, receipts, request, after))
        if grant.claimed:
            self._plenty[key] = looked
        else:
            self._plenty.pop(key, None)
        if grant.last_topic is not None:
            self._turns[request.group] = grant.last_topic
        if grant.buried and request.on_dead:
            request.on_dead(grant.buried)
        return grant.held, grant.claimed

    def settle(self, receipt: int, setbacks: Sequence[Setback], now: float, *, finished: bool) -> int:
        return self._database.write(lambda db: claims.settle(db, receipt, setbacks, now, finished))

    def waiting_keys(self, receipt: int) -> dict[tuple[int, str], Waiting]:
        rows = self._database.read(lambda db: db.rows(sql.WAITING_KEYS, (receipt,)))
        places = [(*topic_and_offset(place), key, due) for place, key, due in rows]
        # From the last to the first, which stays.
        return {(topic, key): Waiting(offset, due) for topic, offset, key, due in places}

    def renew(self, receipt: int, until: float) -> int:
        return self._database.write(lambda db: claims.renew(db, receipt, until))

    def hand_back(self, client: str) -> None:
        def leave(db: Session) -> None:
            db.change(sql.EXPIRE_ALL_OF, (client,))
            db.change(sql.LEAVE, (client,))
            db.change(sql.DROP_LISTENERS, (client,))

        self._database.write(leave)

    def beat(self, client: str, group: str, threads: int, now: float) -> None:
        self._database.write(lambda db: db.change(sql.BEAT, (client, offers.find_group(db, group).id, threads, now)))

    def tell_listeners(self, client: str, places: Collection[ListenerPlace], now: float) -> None:
        self._database.write(lambda db: watching.tell_listeners(db, client, places, now))

    def add_alert(self, alert: Alert) -> None:
        self._database.write(lambda db: watching.add_alert(db, alert))

    def lag(self, group: str) -> int:
        rows = self._look(lambda db: db.rows(sql.LAG, {"group_id": offers.find_group(db, group).id}))
        return int(rows[0][0])

    def dead(self, group: str, limit: int, *, topic: int | None = None, offset: int | None = None) -> list[Death]:
        first, end = _ALL_PLACES if topic is None else topic_bounds(topic)
        wanted = {"first": first, "end": end, "offset": offset, "limit": limit}
        rows = self._database.read(
            lambda db: db.rows(sql.DEAD, {"group_id": offers.find_group(db, group).id, **wanted})
        )
        return [Death(Range(*topic_and_offset(place), 1, attempts), *rest) for place, attempts, *rest in rows]

    def replay_dead(self, group: str, messages: Collection[tuple[int, int]], now: float) -> int:
        def replay(db: Session) -> int:
            group_id = offers.lock_group(db, group).id
            there = [each for each in messages if db.count(sql.DROP_DEAD, (group_id, to_place(*each)))]
            again = [Setback(Range(*each, 1, attempts=0), now, "replayed") for each in there]
            claims.add_setbacks(db, group_id, again, now)
            return len(there)

        return self._database.write(replay)

    def drop_dead(self, group: str, messages: Collection[tuple[int, int]]) -> int:
        def drop(db: Session) -> int:
            group_id = offers.lock_group(db, group).id
            return sum(db.count(sql.DROP_DEAD, (group_id, to_place(*each))) for each in messages)

        return self._database.write(drop)

    def stored_bytes(self, topic: int) -> int:
        return int(self._look(lambda db: db.rows(sql.STORED_BYTES, topic_bounds(topic)))[0][0])

    def clean(self, topic: int, first: int, before: float, excess: int, *, runs: int) -> Cleaned:
        def clean(db: Session) -> Cleaned:
            return retention.clean(db, topic, first, before, excess, runs)

        return self._database.write(clean, PAGE * (runs + 4))

    def skip_deleted(self, group: str) -> None:
        self._database.write(lambda db: retention.skip_deleted(db, offers.lock_group(db, group)))

    def settings(self) -> dict[str, str]:
        return dict(self._database.read(lambda db: db.rows(sql.SETTINGS)))

    def set_setting(self, name: str, value: str | None) -> None:
        if value is None:
            self._database.write(lambda db: db.change(sql.DROP_SETTING, (name,)))
        else:
            self._database.write(lambda db: db.change(sql.SET_SETTING, (name, value)))

    def topic_states(self, since: float) -> list[TopicState]:
        return self._look(lambda db: watching.topic_states(db, since))

    def group_states(self) -> list[GroupState]:
        return self._look(lambda db: [GroupState(*found) for found in db.rows(sql.GROUP_STATES)])

    def client_states(self) -> list[ClientState]:
        return self._database.read(watching.client_states)

    def listener_states(self) -> list[ListenerState]:
        return self._look(watching.listener_states)

    def alerts(self, limit: int) -> list[Alert]:
        return [Alert(*found) for found in self._database.read(lambda db: db.rows(sql.ALERTS, (limit,)))]

    def alert_counts(self) -> list[AlertCount]:
        return [AlertCount(*found) for found in self._database.read(lambda db: db.rows(sql.ALERT_COUNTS))]

    def trace(self, topic: int, offset: int) -> Trace:
        return self._look(lambda db: watching.trace(db, topic, offset))

    def close(self) -> None:
        self._database.close()

    def _drop(self, tables: str) -> None:
        """tables: a statement that names them and views, each with its kind."""

        def drop(db: Session) -> None:
            for kind, name in db.rows(tables):
                db.change(f"DROP {kind} {name}", ())

        self._database.write(drop)

    def _look(self, work: Callable[[Session], Result]) -> Result:
        """Read what depends on what has been sent."""
        self._admit()
        return self._database.read(work)

    def _admit(self) -> None:
        """Give offsets to what is committed and has none yet, in a database in which there is such."""

    def _version(self, db: Session) -> int | None:
        """Other than before, if anything was committed meanwhile; None: the database cannot tell."""
        return None

    def _nothing_to_claim(self, request: ClaimRequest) -> bool:
        """Found out without a lock and, where the database tells that nothing has changed, without a look."""

        def look(db: Session) -> offers.Outlook:
            # The version first: what is committed from here on changes it again.
            version, known = self._version(db), self._outlooks.get(key)
            if known is not None and version is not None and known.version == version:
                return known
            return offers.look(db, version, request)

        key = request.group, request.topics
        outlook = self._outlooks[key] = self._database.read(look)
        return outlook.is_empty(request.now)

"""One machine drives all stores side by side, and every answer of each must be the same.

Receipts and the ids of topics are each store's own business; everything else is compared.
"""

import contextlib
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from servers import HOST, MariaDb, Redis

from brook.claiming import Range, Setback
from brook.errors import BrookError
from brook.identity import new_client_id
from brook.model import Claimed
from brook.packing import Piece, Run, pack
from brook.stores.base import ClaimRequest, Store
from brook.stores.mysql import MysqlStore
from brook.stores.sqlite import SqliteStore
from brook.urls import mysql_target

TOPICS, GROUPS = ["a", "b", "c"], ["g", "h"]
CLIENTS = [new_client_id("one"), new_client_id("two")]
LEASE = 10.0
START = 1_000_000.0

Open = Callable[[], Store]

topics = st.sampled_from(TOPICS)
groups = st.sampled_from(GROUPS)
positions = st.one_of(
    st.sampled_from(["earliest", "latest"]),
    st.integers(0, 12),
    st.integers(0, 40).map(lambda second: datetime.fromtimestamp(START + second, UTC)),
)
rules = st.sampled_from([*["read-write"] * 6, "write-only", "read-only", "closed"])


def dead(client: str) -> str:
    label, place, pid, started, unique = client.split("/")
    return "/".join((label, place, pid, str(int(started) + 1), unique))


class Side:
    """A store, with the names that the machine uses for what the store has numbers for."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.receipts: list[Claimed] = []

    def id(self, topic: str) -> int:
        return self.store.topics()[topic]

    def names(self) -> dict[int, str]:
        return {number: name for name, number in self.store.topics().items()}

    def shown(self, pieces: Sequence[Piece]) -> list[Any]:
        """Message by message: how they are cut is the store's business."""
        names = self.names()
        return sorted(
            (names[p.topic], offset, p.attempts, p.sent, body, json.dumps(extra))
            for p in pieces
            for offset, (body, extra) in enumerate(zip(p.bodies, p.all_extras, strict=True), p.first)
        )

    def claim(self, request: ClaimRequest, wanted: Sequence[str] | None, done: Sequence[int]) -> Any:
        """done: the numbers of claims that are over."""
        ids = None if wanted is None else frozenset(map(self.id, wanted))
        over = [self.receipts[number - 1].receipt for number in done]
        held, claimed = self.store.ack_and_claim(over, request._replace(topics=ids))
        self.receipts += claimed
        found = self.store.read([each.receipt for each in claimed])
        return held, [self._told(each, pieces) for each, pieces in zip(claimed, found, strict=True)]

    def _told(self, claimed: Claimed, pieces: Sequence[Piece]) -> Any:
        keys = {(self.names()[t], key): w for (t, key), w in self.store.waiting_keys(claimed.receipt).items()}
        return claimed[1:], self.shown(pieces), keys

    def state(self, now: float) -> Any:
        names = self.names()
        groups = self.store.group_states()
        dead = {
            group: [(names[d.range.topic], d.range[1:], d[1:]) for d in self.store.dead(group, 99)]
            for group in {state.group for state in groups}
        }
        lags = {state.group: self.store.lag(state.group) for state in groups}
        clients = sorted(map(repr, self.store.client_states()))
        rules = {names[topic]: rule for topic, rule in self.store.rules().items()}
        return self.store.topic_states(now - 5), groups, dead, lags, clients, rules


class Agreement(RuleBasedStateMachine):
    """All that clients do to a store; a subclass says which stores."""

    opens: Sequence[Open] = ()

    def __init__(self) -> None:
        super().__init__()
        self.stack = contextlib.ExitStack()
        self.sides = [Side(self.stack.enter_context(contextlib.closing(open_one()))) for open_one in self.opens]
        self.now = START
        self.numbers = itertools.count()
        self.all(lambda side: side.store.create_topics(TOPICS[:2]))
        for group in GROUPS:
            self.all(lambda side, group=group: side.store.subscribe(group, None, "earliest"))  # type: ignore[misc]
        self.send([("a", 4, False), ("b", 4, True)])

    def teardown(self) -> None:
        self.stack.close()

    def all(self, act: Callable[[Side], Any]) -> Any:
        """Do it to all; what it returns, or the name of what it raises, must be the same."""
        answers = [_answer(act, side) for side in self.sides]
        assert all(answer == answers[0] for answer in answers), answers
        return answers[0]

    @rule(seconds=st.floats(0.5, 2 * LEASE))
    def time_goes_on(self, seconds: float) -> None:
        self.now += seconds

    @rule(topic=topics)
    def create(self, topic: str) -> None:
        self.all(lambda side: side.store.create_topics([topic]))

    @rule(counts=st.lists(st.tuples(topics, st.integers(1, 4), st.booleans()), min_size=1, max_size=3))
    def send(self, counts: list[tuple[str, int, bool]]) -> None:
        bodies = [[b"%d" % next(self.numbers) for _ in range(count)] for _, count, _ in counts]

        def runs(side: Side) -> list[Run]:
            return [
                run
                for (topic, _, keyed), texts in zip(counts, bodies, strict=True)
                for run in pack(side.id(topic), texts, [("k", ("x",), {}) if keyed else None for _ in texts])
            ]

        self.all(lambda side: side.store.append(runs(side), self.now))

    @rule(
        group=groups,
        wanted=st.none() | st.lists(topics, unique=True, min_size=1),
        start=positions,
        ordered=st.none() | st.booleans(),
        tags=st.none() | st.just(["x"]),
    )
    def subscribe(self, group: str, wanted: list[str] | None, start: Any, ordered: Any, tags: Any) -> None:
        def act(side: Side) -> None:
            ids = None if wanted is None else list(map(side.id, wanted))
            side.store.subscribe(group, ids, start, ordered=ordered, tags=tags)

        self.all(act)

    @rule(
        group=groups,
        wanted=st.none() | st.lists(topics, unique=True, min_size=1),
        limit=st.integers(1, 6),
        client=st.sampled_from([*CLIENTS, dead(CLIENTS[0])]),  # one of them crashes at once
        threads=st.integers(1, 3).map(lambda count: tuple("xyz"[:count])),
        most=st.none() | st.integers(1, 3),
        data=st.data(),
    )
    def claim(
        self,
        group: str,
        wanted: list[str] | None,
        limit: int,
        client: str,
        threads: tuple[str, ...],
        most: int | None,
        data: st.DataObject,
    ) -> None:
        done = self._some_claims(data) if data.draw(st.booleans()) else []
        request = ClaimRequest(group, None, limit, client, self.now, LEASE, threads, most)
        self.all(lambda side: side.claim(request, wanted, done))

    @rule(data=st.data())
    def ack(self, data: st.DataObject) -> None:
        numbers = self._some_claims(data)
        self.all(lambda side: side.store.ack([side.receipts[number - 1].receipt for number in numbers], self.now))

    @rule(data=st.data(), wait=st.none() | st.floats(0, 8), part=st.integers(1, 3), finished=st.booleans())
    def settle(self, data: st.DataObject, wait: float | None, part: int, finished: bool) -> None:
        if number := self._some_claim(data):
            due = None if wait is None else self.now + wait

            def act(side: Side) -> int:
                receipt = side.receipts[number - 1].receipt
                setbacks = [
                    Setback(Range(p.topic, p.first, min(part, p.messages), p.attempts), due, "because", p.keys[0])
                    for p in side.store.read([receipt])[0]
                ]
                return side.store.settle(receipt, setbacks, self.now, finished=finished)

            self.all(act)

    @rule(data=st.data(), seconds=st.floats(0, 2 * LEASE))
    def renew(self, data: st.DataObject, seconds: float) -> None:
        if number := self._some_claim(data):
            self.all(lambda side: side.store.renew(side.receipts[number - 1].receipt, self.now + seconds))

    @rule(client=st.sampled_from(CLIENTS))
    def leave(self, client: str) -> None:
        self.all(lambda side: side.store.hand_back(client))

    @rule(client=st.sampled_from(CLIENTS), group=groups)
    def beat(self, client: str, group: str) -> None:
        self.all(lambda side: side.store.beat(client, group, 3, self.now))

    @rule(group=groups, wanted=st.none() | st.lists(topics, unique=True, min_size=1), position=positions)
    def reset(self, group: str, wanted: list[str] | None, position: Any) -> None:
        self.all(lambda side: side.store.reset(group, None if wanted is None else list(map(side.id, wanted)), position))

    @rule(topic=topics, age=st.floats(0, 20), excess=st.integers(0, 5), runs=st.integers(1, 4))
    def clean(self, topic: str, age: float, excess: int, runs: int) -> None:
        self.all(lambda side: side.store.clean(side.id(topic), 0, self.now - age, excess, runs=runs))

    @rule(topic=topics, which=rules)
    def set_rule(self, topic: str, which: Any) -> None:
        self.all(lambda side: side.store.set_rule(side.id(topic), which))

    @rule(group=groups, replay=st.booleans(), topic=topics, offset=st.integers(0, 6))
    def undertake(self, group: str, replay: bool, topic: str, offset: int) -> None:
        def act(side: Side) -> int:
            which = [(side.id(topic), offset)]
            return side.store.replay_dead(group, which, self.now) if replay else side.store.drop_dead(group, which)

        self.all(act)

    @rule(topic=topics, first=st.integers(0, 8), label=st.none() | st.sampled_from(["k", "x", "none"]))
    def scan(self, topic: str, first: int, label: str | None) -> None:
        self.all(lambda side: side.shown(side.store.scan(side.id(topic), first, None, runs=9, label=label)))

    @rule(topic=topics, offset=st.integers(0, 8))
    def trace(self, topic: str, offset: int) -> None:
        self.all(lambda side: side.store.trace(side.id(topic), offset))

    @rule(name=st.sampled_from(["x", "y"]), value=st.none() | st.just("1"))
    def set_setting(self, name: str, value: str | None) -> None:
        self.all(lambda side: side.store.set_setting(name, value))
        self.all(lambda side: side.store.settings())

    @invariant()
    def they_agree(self) -> None:
        self.all(lambda side: side.state(self.now))

    def _some_claim(self, data: st.DataObject) -> int:
        """The number of a claim, from 1 on; 0: there is none yet."""
        count = len(self.sides[0].receipts)
        return data.draw(st.integers(1, count)) if count else 0

    def _some_claims(self, data: st.DataObject) -> list[int]:
        count = len(self.sides[0].receipts)
        return data.draw(st.lists(st.integers(1, count), max_size=2)) if count else []


def _answer(act: Callable[[Side], Any], side: Side) -> Any:
    try:
        return act(side)
    except (BrookError, KeyError) as error:
        return type(error).__name__


def run(opens: Sequence[Open], examples: int) -> None:
    machine = type("Machine", (Agreement,), {"opens": opens})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.fixture
def new_sqlite(tmp_path: Path) -> Callable[..., Store]:
    numbers = itertools.count()

    def open_one(kind: type[SqliteStore] = SqliteStore) -> Store:
        return kind(tmp_path / f"{next(numbers)}.db", durability="off")

    return open_one


class ForgetsAttempts(SqliteStore):
    """The second time counts as the first."""

    def read(self, receipts: Sequence[int]) -> list[list[Piece]]:
        return [[piece._replace(attempts=1) for piece in pieces] for pieces in super().read(receipts)]


@pytest.mark.real
def test_all_stores_agree(maria: MariaDb, places: Redis, new_sqlite: Callable[..., Store]) -> None:
    def new_mysql(options: str = "") -> Store:
        return MysqlStore(mysql_target(maria.url(maria.new_database()) + options))

    run([new_sqlite, new_mysql, lambda: new_mysql(f"?redis={HOST}:{places.port}")], examples=10)


def test_a_store_that_does_not_agree_is_found(new_sqlite: Callable[..., Store]) -> None:
    with pytest.raises(AssertionError):
        run([new_sqlite, lambda: new_sqlite(ForgetsAttempts)], examples=400)


def test_a_store_agrees_with_itself(new_sqlite: Callable[..., Iterator[Store]]) -> None:
    run([new_sqlite, new_sqlite], examples=10)

"""Sending, topics, rules and settings."""

import contextlib
from functools import partial

from brook.errors import Forbidden, UnknownTopic
from brook.model import Rule
from brook.packing import pack
from brook.stores.base import Store
from brook.testing import tools
from brook.testing.tools import LEASE, NOW, Check, Open

RULES: tuple[tuple[Rule, bool, bool], ...] = (  # writable, readable
    ("write-only", True, False),
    ("read-only", False, True),
    ("closed", False, False),
    ("read-write", True, True),
)


def offsets_are_dense_under_concurrency(open_one: Open) -> None:
    stores = [open_one() for _ in range(2)]
    (topic,) = tools.create(stores[0], "t")
    firsts: list[int] = []

    def send(store: Store, size: int) -> None:
        for _ in range(25):
            firsts.extend(range(first := store.append(tools.run(topic, size), NOW)[0], first + size))

    tools.in_threads([partial(send, store, size) for size in (1, 3) for store in stores])
    assert sorted(firsts) == list(range(200)), "offsets are not dense from 0, or were given twice"
    tools.subscribe_all(stores[0])
    assert tools.offsets(tools.drain(stores[0])) == {topic: list(range(200))}, "what is stored is not what was returned"


def runs_of_one_append_follow_each_other(open_one: Open) -> None:
    store = open_one()
    a, b = tools.create(store, "a", "b")
    store.append(tools.run(a, 2), NOW)
    firsts = store.append([*tools.run(a, 3), *tools.run(b, 1), *tools.run(a, 1)], NOW)
    assert firsts == [2, 0, 5], f"first offsets {firsts}, expected [2, 0, 5]"


def a_refused_append_stores_nothing(open_one: Open) -> None:
    store = open_one()
    (topic,) = tools.create(store, "t")
    with tools.raises(UnknownTopic):
        store.append([*tools.run(topic, 2), *tools.run(topic + 1, 1)], NOW)
    tools.subscribe_all(store)
    assert store.lag("g") == 0, "a refused append left messages"
    assert store.append(tools.run(topic, 1), NOW) == [0], "a refused append used up offsets"


def messages_come_back_as_they_were_sent(open_one: Open) -> None:
    store = open_one()
    (topic,) = tools.create(store, "t")
    bodies = [b"", b"x", bytes(range(256)), b"y" * 200_000, b"z" * 64, b"z" * 64]
    extras = [None, ("key", ("tag",), {"name": "value"}), None, None, None, None]
    store.append(pack(topic, bodies, extras), NOW)
    store.append(pack(topic, [b"", b""]), NOW)
    tools.subscribe_all(store)
    pieces = tools.drain(store, limit=2)
    assert tools.bodies(pieces) == [*bodies, b"", b""], "bodies changed"
    found = [extra for piece in pieces for extra in (piece.extras or [None] * piece.messages)]
    assert [*map(bool, found)] == [*map(bool, extras), False, False], "key, tags, properties are with other messages"
    key, tags, properties = found[1] or (None, (), {})
    assert (key, tuple(tags), properties) == extras[1], "key, tags, properties changed"
    assert {(piece.sent, piece.attempts) for piece in pieces} == {(NOW * 1000, 1)}, "time or attempts are wrong"


def a_topic_is_created_once(open_one: Open) -> None:
    stores = [open_one() for _ in range(2)]
    (topic,) = tools.create(stores[0], "t")
    stores[0].append(tools.run(topic, 2), NOW)
    tools.in_threads([partial(store.create_topics, ["t", "u"]) for store in stores])
    assert sorted(stores[1].topics()) == ["t", "u"], "topics are not what was created"
    assert stores[1].topics()["t"] == topic, "a topic changed its id"
    assert stores[1].append(tools.run(topic, 1), NOW) == [2], "a topic lost its offsets"


def rules_are_kept_on_every_call(open_one: Open) -> None:
    store, other = open_one(), open_one()
    a, b = tools.create(store, "a", "b")
    store.append([*tools.run(a, 4), *tools.run(b, 1)], NOW)
    tools.subscribe_all(store)
    claimed, _ = tools.receive(store, limit=1)
    for rule, writable, readable in RULES:
        other.set_rule(a, rule)
        assert store.rules() == {a: rule, b: "read-write"}, "the rules are not what was set"
        with contextlib.nullcontext() if writable else tools.raises(Forbidden):
            store.append(tools.run(a, 1), NOW)
        with contextlib.nullcontext() if writable else tools.raises(Forbidden):
            store.append([*tools.run(b, 1), *tools.run(a, 1)], NOW)
        with contextlib.nullcontext() if readable else tools.raises(Forbidden):
            tools.claim(store, tools.request(topics=frozenset({a})))
        with contextlib.nullcontext() if readable else tools.raises(Forbidden):
            store.scan(a, 0, None, runs=1)
        if not readable:
            assert a not in tools.offsets(tools.drain(store, now=NOW + 9 * LEASE)), (
                "handed out of a topic that nobody may read"
            )
    assert store.scan(b, 3, None, runs=9) == [], "something was stored though it was refused"
    assert tools.ack(store, claimed) == 1, "what was in flight before cannot be acked"


def one_closed_topic_closes_no_other(open_one: Open) -> None:
    store = open_one()
    a, b = tools.create(store, "a", "b")
    store.append([*tools.run(a, 2), *tools.run(b, 2)], NOW)
    tools.subscribe_all(store)
    store.set_rule(b, "closed")
    claimed = tools.claim(store, tools.request(topics=frozenset({a, b})))
    assert claimed, "nothing was handed out, though one of the topics may be read"
    assert tools.offsets(tools.read(store, claimed.receipt)) == {a: [0, 1]}, "not what may be read, and no more"


def settings_are_kept(open_one: Open) -> None:
    store, other = open_one(), open_one()
    assert store.settings() == {}, "a new store has no settings"
    store.set_setting("a", "1")
    store.set_setting("b", "[2]")
    other.set_setting("a", "3")
    assert store.settings() == {"a": "3", "b": "[2]"}, "settings are not what was set"
    store.set_setting("b", None)
    assert other.settings() == {"a": "3"}, "a setting that was dropped is still there"


CHECKS: tuple[Check, ...] = (
    offsets_are_dense_under_concurrency,
    runs_of_one_append_follow_each_other,
    a_refused_append_stores_nothing,
    messages_come_back_as_they_were_sent,
    a_topic_is_created_once,
    rules_are_kept_on_every_call,
    one_closed_topic_closes_no_other,
    settings_are_kept,
)

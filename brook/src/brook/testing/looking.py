"""Positions, resets, looks and retention."""

from brook.claiming import Range, Setback
from brook.errors import UnknownGroup, UnknownTopic
from brook.packing import pack
from brook.testing import tools
from brook.testing.tools import NOW, Check, Open


def positions_are_found(open_one: Open) -> None:
    store = open_one()
    a, b = tools.create(store, "a", "b")
    for second in range(3):
        store.append(tools.run(a, 2), NOW + second)
    times = {0: 0, 1: 2, 2: 4, 3: 6}  # the offset that each second means
    for second, offset in times.items():
        assert store.offset_at(a, tools.time(NOW + second)) == offset, f"second {second} is not offset {offset}"
    assert store.offset_at(a, tools.time(NOW + 0.5)) == 2, "a time between two messages is not the later one"
    found = [store.offset_at(a, position) for position in ("earliest", 3, 99, "latest")]
    assert found == [0, 3, 6, 6], f"earliest, 3, 99 and latest are {found}"
    assert [store.offset_at(b, position) for position in ("earliest", 3, "latest")] == [0, 0, 0], "an empty topic"
    store.subscribe("g", [a], 5)
    store.subscribe("h", [a], tools.time(NOW + 1))
    assert (tools.offsets(tools.drain(store)), tools.offsets(tools.drain(store, "h"))) == (
        {a: [5]},
        {a: [2, 3, 4, 5]},
    ), "groups start elsewhere"


def a_reset_begins_anew(open_one: Open) -> None:
    store = open_one()
    a, b = tools.create(store, "a", "b")
    store.append([*tools.run(a, 6), *tools.run(b, 2)], NOW)
    tools.subscribe_all(store)
    store.subscribe("h", None, "earliest")
    receipt, _ = tools.receive(store, limit=8)
    setbacks = [Setback(Range(a, 2, 1), NOW + 5, "busy"), *(Setback(Range(a, n, 1), None, "x") for n in (1, 4))]
    store.settle(receipt, setbacks, NOW, finished=False)
    store.reset("g", [a], 3)
    assert tools.ack(store, receipt) == 2, "a reset took what was in flight in another topic, or not all in its own"
    assert [d.range.first for d in store.dead("g", 9)] == [1], "dead letters from the new place on must be gone"
    assert store.lag("g") == 3, "lag is not what follows the new place"
    pieces = tools.drain(store, now=NOW + 5)
    assert (tools.offsets(pieces), {p.attempts for p in pieces}) == ({a: [3, 4, 5]}, {1}), (
        "not all from the place, once"
    )
    store.reset("g", None, "earliest")
    assert tools.offsets(tools.drain(store)) == {a: [*range(6)], b: [0, 1]}, "not everything came again"
    store.reset("h", None, "latest")
    assert store.lag("h") == 0, "not at the end"
    with tools.raises(UnknownTopic):
        store.reset("g", [b + 1], 0)
    with tools.raises(UnknownGroup):
        store.reset("nobody", None, 0)


def anybody_may_look(open_one: Open) -> None:
    store = open_one()
    a, b = tools.create(store, "a", "b")
    store.append(tools.run(a, 3), NOW)
    store.append(pack(a, [b"x", b"y"], [None, ("key", ("tag",), {"name": "value"})]), NOW)
    store.append([*tools.run(a, 1), *tools.run(b, 1)], NOW)
    assert tools.offsets(store.scan(a, 1, None, runs=9)) == {a: [1, 2, 3, 4, 5]}, "not everything from the place on"
    assert tools.offsets(store.scan(a, 1, 4, runs=9)) == {a: [1, 2, 3]}, "not everything to before the end"
    assert tools.offsets(store.scan(a, 1, None, runs=2)) == {a: [1, 2, 3, 4]}, "more runs than asked for, or fewer"
    assert tools.offsets(store.scan(a, 0, None, runs=9, label="key")) == {a: [3, 4]}, "not the run with the key"
    assert tools.offsets(store.scan(a, 4, None, runs=9, label="tag")) == {a: [4]}, (
        "not the part of the run with the tag"
    )
    assert store.scan(a, 0, None, runs=9, label="value") == [], "a property is no label"
    assert store.scan(a, 6, None, runs=9) == [], "there is nothing behind the end"


def retention_spares_what_is_in_flight(open_one: Open) -> None:
    store = open_one()
    a, b = tools.create(store, "a", "b")
    for second in range(8):
        store.append([*tools.run(a, 1), *tools.run(b, 1)], NOW + second)
    tools.subscribe_all(store)
    store.subscribe("idle", [a], "earliest")
    claimed = [tools.claim(store, tools.request(topics=frozenset({a}), limit=1)) for _ in range(4)]
    held, late, dead, done = [each.receipt for each in claimed if each]
    store.settle(late, [Setback(Range(a, 1, 1), NOW + 99, "busy")], NOW, finished=True)
    store.settle(dead, [Setback(Range(a, 2, 1), None, "broken")], NOW, finished=True)
    tools.ack(store, done)
    assert store.stored_bytes(a) == 32, "8 bodies of 4 bytes"
    step = store.clean(a, 0, NOW + 6, 0, runs=5)
    assert (step.messages, step.bytes, step.next) == (2, 20, 5), f"of 5 runs, 3 are in flight: {step}"
    step = store.clean(a, 5, NOW + 6, 0, runs=5)
    assert (step.messages, step.next) == (1, None), f"only what was sent before: {step}"
    assert tools.offsets(store.scan(a, 0, None, runs=99)) == {a: [0, 1, 2, 6, 7]}, (
        "not what is in flight, and what is new"
    )
    assert tools.offsets(store.scan(b, 0, None, runs=99)) == {b: [*range(8)]}, "another topic was touched"
    assert tools.offsets(tools.drain(store, "idle")) == {a: [0, 1, 2, 6, 7]}, "a group passed over what is there"
    assert store.lag("idle") == 0, "a group waits for what is gone"
    assert tools.offsets(tools.read(store, held)) == {a: [0]}, "what is in flight cannot be read"
    tools.ack(store, held)


def retention_by_size_leaves_the_newest(open_one: Open) -> None:
    store = open_one()
    (topic,) = tools.create(store, "t")
    for _ in range(6):
        store.append(tools.run(topic, 1), NOW)
    tools.subscribe_all(store)
    held, _ = tools.receive(store, limit=2)
    step = store.clean(topic, 0, 0, 8, runs=99)
    assert (step.messages, step.bytes, step.next) == (0, 8, None), f"the newest went for the oldest: {step}"
    tools.ack(store, held)
    step = store.clean(topic, 0, 0, 8, runs=99)
    assert (step.messages, step.bytes, step.next) == (2, 8, None), f"8 bytes too many are 2 messages: {step}"
    assert tools.offsets(store.scan(topic, 0, None, runs=99)) == {topic: [2, 3, 4, 5]}, "not the newest"


def groups_pass_over_nothing_that_stays(open_one: Open) -> None:
    store = open_one()
    (topic,) = tools.create(store, "t")
    for messages in (2, 4, 3, 1):
        store.append(tools.run(topic, messages), NOW)
    tools.subscribe_all(store)
    store.subscribe("idle", None, "earliest")
    tools.ack(store, tools.receive(store, limit=3)[0])
    held, _ = tools.receive(store, limit=1)
    step = store.clean(topic, 0, 0, 36, runs=99)
    assert step.messages == 5, f"of the first 9 messages, 4 are in a run with one in flight: {step}"
    assert store.lag("idle") == 8, "a group did not go on behind what is gone"
    assert tools.offsets(tools.drain(store)) == {topic: [4, 5, 9]}, "a group passed over what it has a part of"
    assert tools.offsets(tools.drain(store, "idle")) == {topic: [2, 3, 4, 5, 9]}, "a group passed over what is there"
    tools.ack(store, held)


def deliveries_go_with_their_messages(open_one: Open) -> None:
    store = open_one()
    (topic,) = tools.create(store, "t")
    for _ in range(4):
        store.append(tools.run(topic, 2), NOW)
    tools.subscribe_all(store)
    store.subscribe("slow", None, "earliest")
    tools.drain(store)
    claimed = [tools.claim(store, tools.request("slow", limit=2)) for _ in range(2)]
    early, late = [each.receipt for each in claimed if each]
    tools.ack(store, early)
    store.clean(topic, 0, 0, 24, runs=99)

    def deliveries() -> list[int]:
        return [len(store.trace(topic, offset).deliveries) for offset in (0, 1, 2, 3, 6, 7)]

    assert deliveries() == [0, 0, 2, 2, 1, 1], "deliveries of what is gone stay, or those of what stays are gone"
    tools.ack(store, late)
    store.clean(topic, 0, 0, 16, runs=99)
    assert store.scan(topic, 0, None, runs=99) == [], "not everything is gone"
    assert deliveries() == [0] * 6, "deliveries of what is gone stay"


def groups_go_on_behind_what_is_gone(open_one: Open) -> None:
    store = open_one()
    a, b = tools.create(store, "a", "b")
    store.append([*tools.run(a, 3), *tools.run(b, 3)], NOW)
    tools.subscribe_all(store)
    store.subscribe("late", [a], "earliest")
    store.clean(a, 0, NOW + 1, 0, runs=9)
    store.append(tools.run(a, 1), NOW)
    for group in ("g", "late"):
        store.skip_deleted(group)
    assert (store.lag("g"), store.lag("late")) == (4, 1), "lag counts what is gone"
    assert tools.offsets(tools.drain(store)) == {a: [3], b: [0, 1, 2]}, "not everything that is there"
    store.skip_deleted("g")
    assert store.append(tools.run(a, 1), NOW) == [4], "offsets must not come again"


CHECKS: tuple[Check, ...] = (
    positions_are_found,
    a_reset_begins_anew,
    anybody_may_look,
    retention_spares_what_is_in_flight,
    retention_by_size_leaves_the_newest,
    groups_pass_over_nothing_that_stays,
    groups_go_on_behind_what_is_gone,
    deliveries_go_with_their_messages,
)

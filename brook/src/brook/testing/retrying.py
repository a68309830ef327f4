"""Refusals, retries, dead letters and order."""

from brook.claiming import Range, Setback
from brook.packing import pack
from brook.stores.base import Death, Waiting
from brook.testing import tools
from brook.testing.tools import CLIENT, LEASE, NOW, OTHER, Check, Open


def refused_comes_again_when_due(open_one: Open) -> None:
    store = open_one()
    (topic,) = tools.create(store, "t")
    store.append(tools.run(topic, 5), NOW)
    tools.subscribe_all(store)
    receipt, _ = tools.receive(store, limit=5)
    later, never = Range(topic, 1, 2), Range(topic, 4, 1)
    setbacks = [Setback(later, NOW + 10, "busy"), Setback(never, None, "broken")]
    assert store.settle(receipt, setbacks, NOW, finished=True) == 5, "settling tells how many messages were held"
    assert store.lag("g") == 2, "what waits counts as lag; what is dead or acked does not"
    assert tools.claim(store, tools.request(now=NOW + 9)) is None, "handed out before it was due"
    receipt, pieces = tools.receive(store, limit=1, now=NOW + 10)
    assert (tools.offsets(pieces), pieces[0].attempts) == ({topic: [1]}, 2), "not the first due, for the second time"
    assert tools.offsets(tools.drain(store, now=NOW + 10)) == {topic: [2]}, "the rest of what is due was not handed out"
    store.settle(receipt, [Setback(Range(topic, 1, 1, 2), NOW + 20, "busy")], NOW, finished=True)
    _, pieces = tools.receive(store, limit=9, now=NOW + 20)
    assert [(p.first, p.attempts) for p in pieces] == [(1, 3)], "attempts are not counted exactly"


def a_late_refusal_is_for_what_is_left(open_one: Open) -> None:
    store = open_one()
    (topic,) = tools.create(store, "t")
    store.append(tools.run(topic, 4), NOW)
    tools.subscribe_all(store)
    late, _ = tools.receive(store, limit=4)
    taken, _ = tools.receive(store, client=OTHER, limit=2, now=NOW + LEASE)
    assert store.settle(late, [Setback(Range(topic, 0, 4), NOW, "late")], NOW, finished=True) == 2, "2 were left"
    assert store.settle(late, [Setback(Range(topic, 0, 4), NOW, "late")], NOW, finished=True) == 0, "none was left"
    assert tools.offsets(tools.drain(store)) == {topic: [2, 3]}, "not what the late one still had"
    assert tools.ack(store, taken) == 2, "a late refusal took another client's claim"


def what_is_put_off_leaves_the_rest(open_one: Open) -> None:
    store = open_one()
    (topic,) = tools.create(store, "t")
    store.append(tools.run(topic, 5), NOW)
    tools.subscribe_all(store)
    receipt, _ = tools.receive(store, limit=5)
    store.settle(receipt, [Setback(Range(topic, 2, 1, 0), NOW + 5, "later")], NOW, finished=False)
    assert tools.offsets(tools.read(store, receipt)) == {topic: [0, 1, 3, 4]}, "the rest is not claimed any more"
    assert tools.ack(store, receipt) == 4, "the rest cannot be acked"
    _, pieces = tools.receive(store, limit=5, now=NOW + 5)
    assert [(p.first, p.attempts) for p in pieces] == [(2, 1)], "what was put off did not come, or counts as tried"


def dead_letters_are_kept_replayed_and_dropped(open_one: Open) -> None:
    store = open_one()
    topic, other = tools.create(store, "t", "other")
    store.append([*tools.run(topic, 3), *tools.run(other, 2)], NOW)
    store.subscribe("g", [topic], "earliest")
    receipt, _ = tools.receive(store, limit=3)
    store.settle(receipt, [Setback(Range(topic, 0, 3, 7), None, "broken")], NOW, finished=True)
    expected = [Death(Range(topic, offset, 1, 7), NOW, "broken") for offset in range(3)]
    assert store.dead("g", 10) == expected, "dead letters are not listed with attempts, time and cause"
    assert store.dead("g", 2) == expected[:2], "more dead letters than asked for"
    store.subscribe("g", [other], "earliest")
    receipt, _ = tools.receive(store, limit=2)
    store.settle(receipt, [Setback(Range(other, 0, 2), None, "odd")], NOW, finished=True)
    assert [d.range[:2] for d in store.dead("g", 1, topic=other)] == [(other, 0)], "not the first of the topic"
    assert [d.range[:2] for d in store.dead("g", 9, offset=1)] == [(topic, 1), (other, 1)], "not those of the offset"
    assert [d.range[:2] for d in store.dead("g", 9, topic=other, offset=1)] == [(other, 1)], "not the one asked for"
    assert store.drop_dead("g", [(other, 0), (other, 1)]) == 2, "not both were there"
    assert tools.claim(store, tools.request(now=NOW + 1e6)) is None, "a dead letter was handed out"
    assert store.replay_dead("g", [(topic, 1), (topic, 99)], NOW) == 1, "replaying tells how many were there"
    assert store.drop_dead("g", [(topic, 0), (topic, 1)]) == 1, "dropping tells how many were there"
    assert [death.range.first for death in store.dead("g", 10)] == [2], "not what is left"
    receipt, pieces = tools.receive(store, limit=9)
    assert [(p.first, p.attempts) for p in pieces] == [(1, 1)], "a replayed message must begin anew"


def what_kills_its_clients_dies_in_the_end(open_one: Open) -> None:
    store = open_one()
    (topic,) = tools.create(store, "t")
    store.append(tools.run(topic, 2), NOW)
    tools.subscribe_all(store)
    for _ in range(3):
        tools.receive(store, client=tools.dead(CLIENT), limit=2)
    store.append(tools.run(topic, 1), NOW)
    told: list[int] = []
    claimed = tools.claim(store, tools.request()._replace(max_attempts=3, on_dead=told.append))
    assert claimed and tools.offsets(tools.read(store, claimed.receipt)) == {topic: [2]}, "handed out once too often"
    assert [(d.range.first, d.range.attempts) for d in store.dead("g", 9)] == [(0, 3), (1, 3)], "it is not dead"
    assert told == [2], "nobody was told"


def what_a_group_does_not_want_does_not_die(open_one: Open) -> None:
    store = open_one()
    (topic,) = tools.create(store, "t")
    tags: list[tuple[str, ...]] = [("us",), ("eu",), (), ("us", "eu"), ("eu",)]
    store.append(pack(topic, [b"body"] * 5, [(None, some, {}) for some in tags]), NOW)
    store.subscribe("g", None, "earliest", tags=["eu"])
    tools.receive(store, client=tools.dead(CLIENT), limit=5)
    assert tools.claim(store, tools.request()._replace(max_attempts=1)) is None, "handed out once too often"
    assert [d.range.first for d in store.dead("g", 9)] == [1, 3, 4], "not those that have one of the group's tags"
    assert [d.outcome for d in store.trace(topic, 3).deliveries] == ["dead"], "not what became of it"
    assert store.lag("g") == 0, "what nobody wants must be over"


def an_ordered_group_has_one_claim_per_topic(open_one: Open) -> None:
    store = open_one()
    a, b = tools.create(store, "a", "b")
    store.append([*tools.run(a, 4), *tools.run(b, 1)], NOW)
    store.subscribe("g", None, "earliest", ordered=True)
    claimed = tools.claim(store, tools.request(limit=2, topics=frozenset({a})))
    assert claimed is not None and claimed.ordered, "a claim tells that its group is ordered"
    assert tools.claim(store, tools.request(topics=frozenset({a}))) is None, "two claims of one topic at a time"
    other, pieces = tools.receive(store, client=OTHER, limit=9)
    assert tools.offsets(pieces) == {b: [0]}, "another topic must not be held up"
    tools.ack(store, other)
    waiting = [Setback(Range(a, n, 1), NOW + 9 - n, "busy", "k") for n in (0, 1)]
    store.settle(claimed.receipt, waiting, NOW, finished=True)
    receipt, pieces = tools.receive(store, limit=1)
    assert tools.offsets(pieces) == {a: [2]}, "messages of other keys must go on"
    assert store.waiting_keys(receipt) == {(a, "k"): Waiting(0, NOW + 9)}, "not the first that waits of the key"
    _, pieces = tools.receive(store, client=OTHER, limit=9, now=NOW + LEASE)
    assert tools.offsets(pieces) == {a: [0, 1, 2, 3]}, "once the lease is over the topic is free"


CHECKS: tuple[Check, ...] = (
    refused_comes_again_when_due,
    a_late_refusal_is_for_what_is_left,
    what_is_put_off_leaves_the_rest,
    dead_letters_are_kept_replayed_and_dropped,
    what_kills_its_clients_dies_in_the_end,
    what_a_group_does_not_want_does_not_die,
    an_ordered_group_has_one_claim_per_topic,
)

"""Groups, claims, leases and acks."""

from collections import Counter
from functools import partial

from brook.errors import UnknownGroup, UnknownTopic
from brook.identity import new_client_id
from brook.model import Claimed
from brook.stores.base import Store
from brook.testing import tools
from brook.testing.tools import CLIENT, LEASE, NOW, OTHER, Check, Open


def groups_start_where_they_are_told(open_one: Open) -> None:
    store = open_one()
    a, b = tools.create(store, "a", "b")
    store.append([*tools.run(a, 3), *tools.run(b, 2)], NOW)
    store.subscribe("early", None, "earliest")
    store.subscribe("late", None, "latest")
    store.subscribe("one", [b], "earliest")
    (c,) = tools.create(store, "c")
    store.append([*tools.run(a, 1), *tools.run(c, 1)], NOW)
    store.subscribe("late", None, "earliest")  # already follows them: nothing changes
    assert tools.offsets(tools.drain(store, "early")) == {a: [0, 1, 2, 3], b: [0, 1], c: [0]}, (
        "earliest is not the start"
    )
    assert tools.offsets(tools.drain(store, "late")) == {a: [3], c: [0]}, (
        "latest is not the end, or a new topic was missed"
    )
    assert tools.offsets(tools.drain(store, "one")) == {b: [0, 1]}, "a group got a topic that it does not follow"


def unknown_names_are_refused(open_one: Open) -> None:
    store = open_one()
    with tools.raises(UnknownGroup):
        tools.claim(store, tools.request())
    with tools.raises(UnknownGroup):
        store.lag("g")
    with tools.raises(UnknownTopic):
        store.subscribe("g", [17], "earliest")
    with tools.raises(UnknownGroup):
        store.lag("g")


def claims_respect_limit_and_topics(open_one: Open) -> None:
    store = open_one()
    a, b = tools.create(store, "a", "b")
    store.append([*tools.run(a, 10), *tools.run(b, 10)], NOW)
    tools.subscribe_all(store)
    claimed = tools.claim(store, tools.request(limit=3, topics=frozenset({b})))
    assert claimed == Claimed(claimed.receipt if claimed else 0, 3), f"claimed {claimed}, not 3 messages"
    assert tools.offsets(tools.read(store, claimed.receipt)) == {b: [0, 1, 2]}, "not the first 3 messages of the topic"
    assert tools.offsets(tools.drain(store, limit=4)) == {a: list(range(10)), b: list(range(3, 10))}, (
        "the rest is not whole"
    )


def every_topic_gets_its_turn(open_one: Open) -> None:
    store = open_one()
    topics = tools.create(store, *(f"t{n}" for n in range(40)))
    store.append([run for topic in topics for run in tools.run(topic, 1000)], NOW)
    tools.subscribe_all(store)
    seen: set[int] = set()
    for _ in range(len(topics)):
        seen |= tools.offsets(tools.receive(store, limit=16)[1]).keys()
    assert seen == set(topics), "some topics wait for ever behind others that have more"


def nobody_gets_anothers_messages(open_one: Open) -> None:
    stores = [open_one() for _ in range(3)]
    topics = tools.create(stores[0], "a", "b", "c")
    for _ in range(20):
        stores[0].append([run for topic in topics for run in tools.run(topic, 10)], NOW)
    tools.subscribe_all(stores[0])
    taken: Counter[tuple[int, int]] = Counter()

    def consume(store: Store, client: str, acks: bool) -> None:
        while claimed := tools.claim(store, tools.request(client=client, limit=7)):
            taken.update(
                (t, offset)
                for t, offsets in tools.offsets(tools.read(store, claimed.receipt)).items()
                for offset in offsets
            )
            if acks:
                tools.ack(store, claimed.receipt)

    tools.in_threads(
        [partial(consume, store, new_client_id(f"c{n}"), n % 2 == 0) for n, store in enumerate(stores * 2)]
    )
    assert set(taken.values()) == {1}, "a message had two owners at a time"
    assert len(taken) == 600, f"{600 - len(taken)} messages were skipped"


def acked_is_over(open_one: Open) -> None:
    store = open_one()
    (topic,) = tools.create(store, "t")
    store.append(tools.run(topic, 5), NOW)
    tools.subscribe_all(store)
    receipt, _ = tools.receive(store, limit=3)
    assert store.lag("g") == 5, "what is claimed and not acked must count as lag"
    assert tools.ack(store, receipt) == 3, "an ack tells how many messages it was for"
    assert store.lag("g") == 2, "what is acked must not count as lag"
    assert tools.ack(store, receipt) == 0, "the second ack of a receipt is for nothing"
    again = open_one()
    assert tools.offsets(tools.drain(again, now=NOW + 1000 * LEASE)) == {topic: [3, 4]}, (
        "acked messages came back, or others went"
    )
    assert again.lag("g") == 0, "a group that has acked everything has no lag"


def a_lease_protects_until_it_is_over(open_one: Open) -> None:
    mine, other = open_one(), open_one()
    (topic,) = tools.create(mine, "t")
    mine.append(tools.run(topic, 5), NOW)
    tools.subscribe_all(mine)
    receipt, _ = tools.receive(mine, limit=5)
    assert tools.claim(other, tools.request(client=OTHER, now=NOW + LEASE - 1)) is None, (
        "taken before the lease was over"
    )
    assert mine.renew(receipt, NOW + 2 * LEASE) == 5, "renewing tells how many messages are held"
    assert tools.claim(other, tools.request(client=OTHER, now=NOW + LEASE + 1)) is None, (
        "taken though the lease was renewed"
    )
    late, pieces = tools.receive(other, client=OTHER, limit=2, now=NOW + 2 * LEASE + 1)
    assert tools.offsets(pieces) == {topic: [0, 1]}, "lost messages must come first, in order"
    assert [piece.attempts for piece in pieces] == [2], "a second delivery must be the second attempt"
    assert mine.renew(receipt, NOW + 9 * LEASE) == 3, "renewing must not bring back what others have"
    assert tools.ack(mine, receipt) == 3, "a late ack must be for what is left alone"
    assert tools.ack(other, late) == 2, "a late ack must not take another client's claim"
    assert other.lag("g") == 0, "all was acked"


def a_dead_clients_messages_go_on_at_once(open_one: Open) -> None:
    store = open_one()
    (topic,) = tools.create(store, "t")
    store.append(tools.run(topic, 4), NOW)
    tools.subscribe_all(store)
    tools.receive(store, client=tools.dead(CLIENT), limit=3)
    receipt, pieces = tools.receive(store, limit=10)
    assert tools.offsets(pieces) == {topic: [0, 1, 2, 3]}, "a dead client's messages did not go to the next"
    assert sorted((p.first, p.attempts) for p in pieces) == [(0, 2), (3, 1)], "attempts are not counted exactly"
    tools.ack(store, receipt)
    assert store.lag("g") == 0, "all was acked"


def what_was_lost_comes_in_order(open_one: Open) -> None:
    store = open_one()
    (topic,) = tools.create(store, "t")
    store.append(tools.run(topic, 3), NOW)
    store.subscribe("g", None, "earliest", ordered=True)
    for limit in (3, 2):  # of the first claim the last message is left
        tools.receive(store, client=tools.dead(CLIENT), limit=limit)
    _, pieces = tools.receive(store, limit=1)
    assert tools.offsets(pieces) == {topic: [0]}, "what was lost first came before what is first"


def handed_back_is_free_at_once(open_one: Open) -> None:
    store = open_one()
    (topic,) = tools.create(store, "t")
    store.append(tools.run(topic, 4), NOW)
    tools.subscribe_all(store)
    tools.receive(store, client=OTHER, limit=2)
    kept, _ = tools.receive(store, limit=1)
    store.hand_back(OTHER)
    assert tools.offsets(tools.receive(store, limit=10)[1]) == {topic: [0, 1, 3]}, (
        "not what was handed back and what was left"
    )
    assert tools.ack(store, kept) == 1, "a client that handed nothing back lost its claim"


def groups_do_not_disturb_each_other(open_one: Open) -> None:
    store = open_one()
    (topic,) = tools.create(store, "t")
    store.append(tools.run(topic, 3), NOW)
    for group in ("g", "h"):
        store.subscribe(group, None, "earliest")
    assert tools.offsets(tools.drain(store, "g")) == tools.offsets(tools.drain(store, "h")) == {topic: [0, 1, 2]}, (
        "groups share progress"
    )


def group_options_stay_until_changed(open_one: Open) -> None:
    store = open_one()
    (topic,) = tools.create(store, "t")
    store.append(tools.run(topic, 2), NOW)
    store.subscribe("g", None, "earliest", ordered=True, tags=["x", "y"])
    store.subscribe("g", None, "earliest")
    claimed = tools.claim(store, tools.request(limit=1))
    assert claimed and claimed[1:] == (1, True, ("x", "y")), "options are not what was set"
    tools.ack(store, claimed.receipt)
    store.subscribe("g", None, "earliest", ordered=False, tags=[])
    claimed = tools.claim(store, tools.request(limit=1))
    assert claimed and claimed[1:] == (1, False, ()), "options did not change"


CHECKS: tuple[Check, ...] = (
    groups_start_where_they_are_told,
    unknown_names_are_refused,
    claims_respect_limit_and_topics,
    every_topic_gets_its_turn,
    nobody_gets_anothers_messages,
    acked_is_over,
    a_lease_protects_until_it_is_over,
    a_dead_clients_messages_go_on_at_once,
    what_was_lost_comes_in_order,
    handed_back_is_free_at_once,
    groups_do_not_disturb_each_other,
    group_options_stay_until_changed,
)

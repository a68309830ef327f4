"""Claims and acks of several threads in one transaction."""

from brook.errors import Forbidden
from brook.testing import tools
from brook.testing.tools import CLIENT, NOW, Check, Open


def each_thread_gets_a_batch(open_one: Open) -> None:
    store = open_one()
    (topic,) = tools.create(store, "t")
    store.append(tools.run(topic, 11), NOW)
    tools.subscribe_all(store)
    tools.receive(store, client=tools.dead(CLIENT), limit=4)
    claimed = store.claim(tools.request(limit=3)._replace(threads=("a", "b", "c", "d", "e")))
    assert [each.messages for each in claimed] == [3, 3, 3, 2], "not a batch for each, as far as the messages last"
    receipts = [each.receipt for each in claimed]
    batches = [tools.offsets(pieces).get(topic) for pieces in store.read(receipts)]
    assert batches == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10]], "not what each would have got after the other"
    assert [tools.offsets(tools.read(store, receipt)).get(topic) for receipt in receipts] == batches, (
        "read together, the batches are others than read alone"
    )
    (piece, *_), *_ = store.read(receipts)
    assert piece.attempts == 2, "what was lost was handed out before"
    assert [store.trace(topic, n).deliveries[-1].thread for n in (2, 3, 6, 10)] == ["a", "b", "c", "d"], (
        "not who has it"
    )
    assert tools.ack(store, receipts[1]) == 3, "a batch cannot be acked by itself"
    assert store.lag("g") == 8, "the ack of one batch ended another"


def an_ordered_topic_is_one_threads(open_one: Open) -> None:
    store = open_one()
    a, b = tools.create(store, "a", "b")
    store.append([*tools.run(a, 4), *tools.run(b, 4)], NOW)
    store.subscribe("g", None, "earliest", ordered=True)
    claimed = store.claim(tools.request(limit=1)._replace(threads=("x", "y", "z")))
    shares = [tools.offsets(pieces) for pieces in store.read([each.receipt for each in claimed])]
    assert shares == [{a: [0]}, {b: [0]}], "two threads have one topic, or one could have another"


def acks_at_once_are_told_apart(open_one: Open) -> None:
    store = open_one()
    (topic,) = tools.create(store, "t")
    store.append(tools.run(topic, 9), NOW)
    tools.subscribe_all(store)
    (first, _), (second, _) = tools.receive(store, limit=3), tools.receive(store, limit=2)
    assert store.ack([first, second + 1000, second, first], NOW) == [3, 0, 2, 0], "not what each of them held"
    assert store.lag("g") == 4, "not all of it was acked, or more"
    assert store.ack([], NOW) == [], "nothing to ack"


def an_ack_and_a_claim_are_done_together(open_one: Open) -> None:
    store = open_one()
    a, b = tools.create(store, "a", "b")
    store.append([*tools.run(a, 4), *tools.run(b, 1)], NOW)
    store.subscribe("g", None, "earliest", ordered=True)
    wanted = tools.request(limit=2, topics=frozenset({a}))
    claimed = tools.claim(store, wanted)
    assert claimed, "there are messages"
    held, (following,) = store.ack_and_claim([claimed.receipt], wanted)
    assert held == [2], "not what the claim held"
    assert tools.offsets(tools.read(store, following.receipt)) == {a: [2, 3]}, "what was acked is still in the way"
    assert store.ack_and_claim([following.receipt], wanted) == ([2], []), "acked as well if there is nothing to claim"
    other = tools.claim(store, tools.request())
    store.set_rule(a, "closed")
    with tools.raises(Forbidden):
        store.ack_and_claim([other.receipt if other else 0], wanted)
    assert store.lag("g") == 1, "the ack was done though the claim was refused"


CHECKS: tuple[Check, ...] = (
    each_thread_gets_a_batch,
    an_ordered_topic_is_one_threads,
    acks_at_once_are_told_apart,
    an_ack_and_a_claim_are_done_together,
)

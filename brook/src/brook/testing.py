"""The conformance suite: what every store must do, whatever it is made of.

    check_store(lambda name: MyStore(directory / f"{name}.db"))

`make(name)` opens the database of that name, and creates it at the first call. Each check uses a database of
its own, and opens it as often as it needs clients. CHECKS holds the checks one by one.
"""

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial

from brook.claiming import Range, Setback
from brook.errors import Forbidden, UnknownGroup, UnknownTopic
from brook.identity import new_client_id
from brook.model import Claimed, Rule
from brook.packing import Piece, Run, pack
from brook.states import ClientState, GroupState, TopicState
from brook.stores.base import ClaimRequest, Death, Store, Waiting

Open = Callable[[], Store]
Check = Callable[[Open], None]

NOW = 1_000_000.0
LEASE = 60.0
CLIENT = new_client_id("check")
OTHER = new_client_id("other")


def check_store(make: Callable[[str], Store]) -> None:
    for check in CHECKS:
        run_check(check, make)


def run_check(check: Check, make: Callable[[str], Store]) -> None:
    with contextlib.ExitStack() as stack:

        def open_one() -> Store:
            return stack.enter_context(contextlib.closing(make(check.__name__)))

        check(open_one)


def offsets_are_dense_under_concurrency(open_one: Open) -> None:
    stores = [open_one() for _ in range(2)]
    (topic,) = _create(stores[0], "t")
    firsts: list[int] = []

    def send(store: Store, size: int) -> None:
        for _ in range(25):
            firsts.extend(range(first := store.append(_run(topic, size), NOW)[0], first + size))

    _in_threads([partial(send, store, size) for size in (1, 3) for store in stores])
    assert sorted(firsts) == list(range(200)), "offsets are not dense from 0, or were given twice"
    _subscribe_all(stores[0])
    assert _offsets(_drain(stores[0])) == {topic: list(range(200))}, "what is stored is not what was returned"


def runs_of_one_append_follow_each_other(open_one: Open) -> None:
    store = open_one()
    a, b = _create(store, "a", "b")
    store.append(_run(a, 2), NOW)
    firsts = store.append([*_run(a, 3), *_run(b, 1), *_run(a, 1)], NOW)
    assert firsts == [2, 0, 5], f"first offsets {firsts}, expected [2, 0, 5]"


def a_refused_append_stores_nothing(open_one: Open) -> None:
    store = open_one()
    (topic,) = _create(store, "t")
    with _raises(UnknownTopic):
        store.append([*_run(topic, 2), *_run(topic + 1, 1)], NOW)
    _subscribe_all(store)
    assert store.lag("g") == 0, "a refused append left messages"
    assert store.append(_run(topic, 1), NOW) == [0], "a refused append used up offsets"


def messages_come_back_as_they_were_sent(open_one: Open) -> None:
    store = open_one()
    (topic,) = _create(store, "t")
    bodies = [b"", b"x", bytes(range(256)), b"y" * 200_000, b"z" * 64, b"z" * 64]
    extras = [None, ("key", ("tag",), {"name": "value"}), None, None, None, None]
    store.append(pack(topic, bodies, extras), NOW)
    store.append(pack(topic, [b"", b""]), NOW)
    _subscribe_all(store)
    pieces = _drain(store, limit=2)
    assert _bodies(pieces) == [*bodies, b"", b""], "bodies changed"
    found = [extra for piece in pieces for extra in (piece.extras or [None] * piece.messages)]
    assert [*map(bool, found)] == [*map(bool, extras), False, False], "key, tags, properties are with other messages"
    key, tags, properties = found[1] or (None, (), {})
    assert (key, tuple(tags), properties) == extras[1], "key, tags, properties changed"
    assert {(piece.sent, piece.attempts) for piece in pieces} == {(NOW * 1000, 1)}, "time or attempts are wrong"


def groups_start_where_they_are_told(open_one: Open) -> None:
    store = open_one()
    a, b = _create(store, "a", "b")
    store.append([*_run(a, 3), *_run(b, 2)], NOW)
    store.subscribe("early", None, "earliest")
    store.subscribe("late", None, "latest")
    store.subscribe("one", [b], "earliest")
    (c,) = _create(store, "c")
    store.append([*_run(a, 1), *_run(c, 1)], NOW)
    store.subscribe("late", None, "earliest")  # already follows them: nothing changes
    assert _offsets(_drain(store, "early")) == {a: [0, 1, 2, 3], b: [0, 1], c: [0]}, "earliest is not the start"
    assert _offsets(_drain(store, "late")) == {a: [3], c: [0]}, "latest is not the end, or a new topic was missed"
    assert _offsets(_drain(store, "one")) == {b: [0, 1]}, "a group got a topic that it does not follow"


def unknown_names_are_refused(open_one: Open) -> None:
    store = open_one()
    with _raises(UnknownGroup):
        store.claim(_request())
    with _raises(UnknownGroup):
        store.lag("g")
    with _raises(UnknownTopic):
        store.subscribe("g", [17], "earliest")
    with _raises(UnknownGroup):
        store.lag("g")


def claims_respect_limit_and_topics(open_one: Open) -> None:
    store = open_one()
    a, b = _create(store, "a", "b")
    store.append([*_run(a, 10), *_run(b, 10)], NOW)
    _subscribe_all(store)
    claimed = store.claim(_request(limit=3, topics=frozenset({b})))
    assert claimed == Claimed(claimed.receipt if claimed else 0, 3), f"claimed {claimed}, not 3 messages"
    assert _offsets(store.read(claimed.receipt)) == {b: [0, 1, 2]}, "not the first 3 messages of the topic"
    assert _offsets(_drain(store, limit=4)) == {a: list(range(10)), b: list(range(3, 10))}, "the rest is not whole"


def every_topic_gets_its_turn(open_one: Open) -> None:
    store = open_one()
    topics = _create(store, *(f"t{n}" for n in range(40)))
    store.append([run for topic in topics for run in _run(topic, 1000)], NOW)
    _subscribe_all(store)
    seen: set[int] = set()
    for _ in range(len(topics)):
        seen |= _offsets(_receive(store, limit=16)[1]).keys()
    assert seen == set(topics), "some topics wait for ever behind others that have more"


def nobody_gets_anothers_messages(open_one: Open) -> None:
    stores = [open_one() for _ in range(3)]
    topics = _create(stores[0], "a", "b", "c")
    for _ in range(20):
        stores[0].append([run for topic in topics for run in _run(topic, 10)], NOW)
    _subscribe_all(stores[0])
    taken: Counter[tuple[int, int]] = Counter()

    def consume(store: Store, client: str, acks: bool) -> None:
        while claimed := store.claim(_request(client=client, limit=7)):
            taken.update(
                (t, offset) for t, offsets in _offsets(store.read(claimed.receipt)).items() for offset in offsets
            )
            if acks:
                store.ack(claimed.receipt, NOW)

    _in_threads([partial(consume, store, new_client_id(f"c{n}"), n % 2 == 0) for n, store in enumerate(stores * 2)])
    assert set(taken.values()) == {1}, "a message had two owners at a time"
    assert len(taken) == 600, f"{600 - len(taken)} messages were skipped"


def acked_is_over(open_one: Open) -> None:
    store = open_one()
    (topic,) = _create(store, "t")
    store.append(_run(topic, 5), NOW)
    _subscribe_all(store)
    receipt, _ = _receive(store, limit=3)
    assert store.lag("g") == 5, "what is claimed and not acked must count as lag"
    assert store.ack(receipt, NOW) == 3, "an ack tells how many messages it was for"
    assert store.lag("g") == 2, "what is acked must not count as lag"
    assert store.ack(receipt, NOW) == 0, "the second ack of a receipt is for nothing"
    again = open_one()
    assert _offsets(_drain(again, now=NOW + 1000 * LEASE)) == {topic: [3, 4]}, (
        "acked messages came back, or others went"
    )
    assert again.lag("g") == 0, "a group that has acked everything has no lag"


def a_lease_protects_until_it_is_over(open_one: Open) -> None:
    mine, other = open_one(), open_one()
    (topic,) = _create(mine, "t")
    mine.append(_run(topic, 5), NOW)
    _subscribe_all(mine)
    receipt, _ = _receive(mine, limit=5)
    assert other.claim(_request(client=OTHER, now=NOW + LEASE - 1)) is None, "taken before the lease was over"
    assert mine.renew(receipt, NOW + 2 * LEASE) == 5, "renewing tells how many messages are held"
    assert other.claim(_request(client=OTHER, now=NOW + LEASE + 1)) is None, "taken though the lease was renewed"
    late, pieces = _receive(other, client=OTHER, limit=2, now=NOW + 2 * LEASE + 1)
    assert _offsets(pieces) == {topic: [0, 1]}, "lost messages must come first, in order"
    assert [piece.attempts for piece in pieces] == [2], "a second delivery must be the second attempt"
    assert mine.renew(receipt, NOW + 9 * LEASE) == 3, "renewing must not bring back what others have"
    assert mine.ack(receipt, NOW) == 3, "a late ack must be for what is left alone"
    assert other.ack(late, NOW) == 2, "a late ack must not take another client's claim"
    assert other.lag("g") == 0, "all was acked"


def a_dead_clients_messages_go_on_at_once(open_one: Open) -> None:
    store = open_one()
    (topic,) = _create(store, "t")
    store.append(_run(topic, 4), NOW)
    _subscribe_all(store)
    _receive(store, client=_dead(CLIENT), limit=3)
    receipt, pieces = _receive(store, limit=10)
    assert _offsets(pieces) == {topic: [0, 1, 2, 3]}, "a dead client's messages did not go to the next"
    assert sorted((p.first, p.attempts) for p in pieces) == [(0, 2), (3, 1)], "attempts are not counted exactly"
    store.ack(receipt, NOW)
    assert store.lag("g") == 0, "all was acked"


def handed_back_is_free_at_once(open_one: Open) -> None:
    store = open_one()
    (topic,) = _create(store, "t")
    store.append(_run(topic, 4), NOW)
    _subscribe_all(store)
    _receive(store, client=OTHER, limit=2)
    kept, _ = _receive(store, limit=1)
    store.hand_back(OTHER)
    assert _offsets(_receive(store, limit=10)[1]) == {topic: [0, 1, 3]}, "not what was handed back and what was left"
    assert store.ack(kept, NOW) == 1, "a client that handed nothing back lost its claim"


def groups_do_not_disturb_each_other(open_one: Open) -> None:
    store = open_one()
    (topic,) = _create(store, "t")
    store.append(_run(topic, 3), NOW)
    for group in ("g", "h"):
        store.subscribe(group, None, "earliest")
    assert _offsets(_drain(store, "g")) == _offsets(_drain(store, "h")) == {topic: [0, 1, 2]}, "groups share progress"


def a_topic_is_created_once(open_one: Open) -> None:
    stores = [open_one() for _ in range(2)]
    (topic,) = _create(stores[0], "t")
    stores[0].append(_run(topic, 2), NOW)
    _in_threads([partial(store.create_topics, ["t", "u"]) for store in stores])
    assert sorted(stores[1].topics()) == ["t", "u"], "topics are not what was created"
    assert stores[1].topics()["t"] == topic, "a topic changed its id"
    assert stores[1].append(_run(topic, 1), NOW) == [2], "a topic lost its offsets"


def refused_comes_again_when_due(open_one: Open) -> None:
    store = open_one()
    (topic,) = _create(store, "t")
    store.append(_run(topic, 5), NOW)
    _subscribe_all(store)
    receipt, _ = _receive(store, limit=5)
    later, never = Range(topic, 1, 2), Range(topic, 4, 1)
    setbacks = [Setback(later, NOW + 10, "busy"), Setback(never, None, "broken")]
    assert store.settle(receipt, setbacks, NOW, finished=True) == 5, "settling tells how many messages were held"
    assert store.lag("g") == 2, "what waits counts as lag; what is dead or acked does not"
    assert store.claim(_request(now=NOW + 9)) is None, "handed out before it was due"
    receipt, pieces = _receive(store, limit=1, now=NOW + 10)
    assert (_offsets(pieces), pieces[0].attempts) == ({topic: [1]}, 2), "not the first due, for the second time"
    assert _offsets(_drain(store, now=NOW + 10)) == {topic: [2]}, "the rest of what is due was not handed out"
    store.settle(receipt, [Setback(Range(topic, 1, 1, 2), NOW + 20, "busy")], NOW, finished=True)
    _, pieces = _receive(store, limit=9, now=NOW + 20)
    assert [(p.first, p.attempts) for p in pieces] == [(1, 3)], "attempts are not counted exactly"


def a_late_refusal_is_for_what_is_left(open_one: Open) -> None:
    store = open_one()
    (topic,) = _create(store, "t")
    store.append(_run(topic, 4), NOW)
    _subscribe_all(store)
    late, _ = _receive(store, limit=4)
    taken, _ = _receive(store, client=OTHER, limit=2, now=NOW + LEASE)
    assert store.settle(late, [Setback(Range(topic, 0, 4), NOW, "late")], NOW, finished=True) == 2, "2 were left"
    assert store.settle(late, [Setback(Range(topic, 0, 4), NOW, "late")], NOW, finished=True) == 0, "none was left"
    assert _offsets(_drain(store)) == {topic: [2, 3]}, "not what the late one still had"
    assert store.ack(taken, NOW) == 2, "a late refusal took another client's claim"


def what_is_put_off_leaves_the_rest(open_one: Open) -> None:
    store = open_one()
    (topic,) = _create(store, "t")
    store.append(_run(topic, 5), NOW)
    _subscribe_all(store)
    receipt, _ = _receive(store, limit=5)
    store.settle(receipt, [Setback(Range(topic, 2, 1, 0), NOW + 5, "later")], NOW, finished=False)
    assert _offsets(store.read(receipt)) == {topic: [0, 1, 3, 4]}, "the rest is not claimed any more"
    assert store.ack(receipt, NOW) == 4, "the rest cannot be acked"
    _, pieces = _receive(store, limit=5, now=NOW + 5)
    assert [(p.first, p.attempts) for p in pieces] == [(2, 1)], "what was put off did not come, or counts as tried"


def dead_letters_are_kept_replayed_and_dropped(open_one: Open) -> None:
    store = open_one()
    (topic,) = _create(store, "t")
    store.append(_run(topic, 3), NOW)
    _subscribe_all(store)
    receipt, _ = _receive(store, limit=3)
    store.settle(receipt, [Setback(Range(topic, 0, 3, 7), None, "broken")], NOW, finished=True)
    expected = [Death(Range(topic, offset, 1, 7), NOW, "broken") for offset in range(3)]
    assert store.dead("g", 10) == expected, "dead letters are not listed with attempts, time and cause"
    assert store.dead("g", 2) == expected[:2], "more dead letters than asked for"
    assert store.claim(_request(now=NOW + 1e6)) is None, "a dead letter was handed out"
    assert store.replay_dead("g", [(topic, 1), (topic, 99)], NOW) == 1, "replaying tells how many were there"
    assert store.drop_dead("g", [(topic, 0), (topic, 1)]) == 1, "dropping tells how many were there"
    assert [death.range.first for death in store.dead("g", 10)] == [2], "not what is left"
    receipt, pieces = _receive(store, limit=9)
    assert [(p.first, p.attempts) for p in pieces] == [(1, 1)], "a replayed message must begin anew"


def what_kills_its_clients_dies_in_the_end(open_one: Open) -> None:
    store = open_one()
    (topic,) = _create(store, "t")
    store.append(_run(topic, 2), NOW)
    _subscribe_all(store)
    for _ in range(3):
        _receive(store, client=_dead(CLIENT), limit=2)
    store.append(_run(topic, 1), NOW)
    claimed = store.claim(_request()._replace(max_attempts=3))
    assert claimed and _offsets(store.read(claimed.receipt)) == {topic: [2]}, "handed out once too often"
    assert [(d.range.first, d.range.attempts) for d in store.dead("g", 9)] == [(0, 3), (1, 3)], "it is not dead"


def an_ordered_group_has_one_claim_per_topic(open_one: Open) -> None:
    store = open_one()
    a, b = _create(store, "a", "b")
    store.append([*_run(a, 4), *_run(b, 1)], NOW)
    store.subscribe("g", None, "earliest", ordered=True)
    claimed = store.claim(_request(limit=2, topics=frozenset({a})))
    assert claimed is not None and claimed.ordered, "a claim tells that its group is ordered"
    assert store.claim(_request(topics=frozenset({a}))) is None, "two claims of one topic at a time"
    other, pieces = _receive(store, client=OTHER, limit=9)
    assert _offsets(pieces) == {b: [0]}, "another topic must not be held up"
    store.ack(other, NOW)
    waiting = [Setback(Range(a, n, 1), NOW + 9 - n, "busy", "k") for n in (0, 1)]
    store.settle(claimed.receipt, waiting, NOW, finished=True)
    receipt, pieces = _receive(store, limit=1)
    assert _offsets(pieces) == {a: [2]}, "messages of other keys must go on"
    assert store.waiting_keys(receipt) == {(a, "k"): Waiting(0, NOW + 9)}, "not the first that waits of the key"
    _, pieces = _receive(store, client=OTHER, limit=9, now=NOW + LEASE)
    assert _offsets(pieces) == {a: [0, 1, 2, 3]}, "once the lease is over the topic is free"


def group_options_stay_until_changed(open_one: Open) -> None:
    store = open_one()
    (topic,) = _create(store, "t")
    store.append(_run(topic, 2), NOW)
    store.subscribe("g", None, "earliest", ordered=True, tags=["x", "y"])
    store.subscribe("g", None, "earliest")
    claimed = store.claim(_request(limit=1))
    assert claimed and claimed[1:] == (1, True, ("x", "y")), "options are not what was set"
    store.ack(claimed.receipt, NOW)
    store.subscribe("g", None, "earliest", ordered=False, tags=[])
    claimed = store.claim(_request(limit=1))
    assert claimed and claimed[1:] == (1, False, ()), "options did not change"


def positions_are_found(open_one: Open) -> None:
    store = open_one()
    a, b = _create(store, "a", "b")
    for second in range(3):
        store.append(_run(a, 2), NOW + second)
    times = {0: 0, 1: 2, 2: 4, 3: 6}  # the offset that each second means
    for second, offset in times.items():
        assert store.offset_at(a, _time(NOW + second)) == offset, f"second {second} is not offset {offset}"
    assert store.offset_at(a, _time(NOW + 0.5)) == 2, "a time between two messages is not the later one"
    found = [store.offset_at(a, position) for position in ("earliest", 3, 99, "latest")]
    assert found == [0, 3, 6, 6], f"earliest, 3, 99 and latest are {found}"
    assert [store.offset_at(b, position) for position in ("earliest", 3, "latest")] == [0, 0, 0], "an empty topic"
    store.subscribe("g", [a], 5)
    store.subscribe("h", [a], _time(NOW + 1))
    assert (_offsets(_drain(store)), _offsets(_drain(store, "h"))) == ({a: [5]}, {a: [2, 3, 4, 5]}), (
        "groups start elsewhere"
    )


def a_reset_begins_anew(open_one: Open) -> None:
    store = open_one()
    a, b = _create(store, "a", "b")
    store.append([*_run(a, 6), *_run(b, 2)], NOW)
    _subscribe_all(store)
    store.subscribe("h", None, "earliest")
    receipt, _ = _receive(store, limit=8)
    setbacks = [Setback(Range(a, 2, 1), NOW + 5, "busy"), *(Setback(Range(a, n, 1), None, "x") for n in (1, 4))]
    store.settle(receipt, setbacks, NOW, finished=False)
    store.reset("g", [a], 3)
    assert store.ack(receipt, NOW) == 2, "a reset took what was in flight in another topic, or not all in its own"
    assert [d.range.first for d in store.dead("g", 9)] == [1], "dead letters from the new place on must be gone"
    assert store.lag("g") == 3, "lag is not what follows the new place"
    pieces = _drain(store, now=NOW + 5)
    assert (_offsets(pieces), {p.attempts for p in pieces}) == ({a: [3, 4, 5]}, {1}), "not all from the place, once"
    store.reset("g", None, "earliest")
    assert _offsets(_drain(store)) == {a: [*range(6)], b: [0, 1]}, "not everything came again"
    store.reset("h", None, "latest")
    assert store.lag("h") == 0, "not at the end"
    with _raises(UnknownTopic):
        store.reset("g", [b + 1], 0)
    with _raises(UnknownGroup):
        store.reset("nobody", None, 0)


def anybody_may_look(open_one: Open) -> None:
    store = open_one()
    a, b = _create(store, "a", "b")
    store.append(_run(a, 3), NOW)
    store.append(pack(a, [b"x", b"y"], [None, ("key", ("tag",), {"name": "value"})]), NOW)
    store.append([*_run(a, 1), *_run(b, 1)], NOW)
    assert _offsets(store.scan(a, 1, None, runs=9)) == {a: [1, 2, 3, 4, 5]}, "not everything from the place on"
    assert _offsets(store.scan(a, 1, 4, runs=9)) == {a: [1, 2, 3]}, "not everything to before the end"
    assert _offsets(store.scan(a, 1, None, runs=2)) == {a: [1, 2, 3, 4]}, "more runs than asked for, or fewer"
    assert _offsets(store.scan(a, 0, None, runs=9, label="key")) == {a: [3, 4]}, "not the run with the key"
    assert _offsets(store.scan(a, 4, None, runs=9, label="tag")) == {a: [4]}, "not the part of the run with the tag"
    assert store.scan(a, 0, None, runs=9, label="value") == [], "a property is no label"
    assert store.scan(a, 6, None, runs=9) == [], "there is nothing behind the end"


def rules_are_kept_on_every_call(open_one: Open) -> None:
    store, other = open_one(), open_one()
    a, b = _create(store, "a", "b")
    store.append([*_run(a, 4), *_run(b, 1)], NOW)
    _subscribe_all(store)
    claimed, _ = _receive(store, limit=1)
    for rule, writable, readable in RULES:
        other.set_rule(a, rule)
        assert store.rules() == {a: rule, b: "read-write"}, "the rules are not what was set"
        with contextlib.nullcontext() if writable else _raises(Forbidden):
            store.append(_run(a, 1), NOW)
        with contextlib.nullcontext() if writable else _raises(Forbidden):
            store.append([*_run(b, 1), *_run(a, 1)], NOW)
        with contextlib.nullcontext() if readable else _raises(Forbidden):
            store.claim(_request(topics=frozenset({a})))
        with contextlib.nullcontext() if readable else _raises(Forbidden):
            store.scan(a, 0, None, runs=1)
        if not readable:
            assert a not in _offsets(_drain(store, now=NOW + 9 * LEASE)), "handed out of a topic that nobody may read"
    assert store.scan(b, 3, None, runs=9) == [], "something was stored though it was refused"
    assert store.ack(claimed, NOW) == 1, "what was in flight before cannot be acked"


def settings_are_kept(open_one: Open) -> None:
    store, other = open_one(), open_one()
    assert store.settings() == {}, "a new store has no settings"
    store.set_setting("a", "1")
    store.set_setting("b", "[2]")
    other.set_setting("a", "3")
    assert store.settings() == {"a": "3", "b": "[2]"}, "settings are not what was set"
    store.set_setting("b", None)
    assert other.settings() == {"a": "3"}, "a setting that was dropped is still there"


def retention_spares_what_is_in_flight(open_one: Open) -> None:
    store = open_one()
    a, b = _create(store, "a", "b")
    for second in range(8):
        store.append([*_run(a, 1), *_run(b, 1)], NOW + second)
    _subscribe_all(store)
    store.subscribe("idle", [a], "earliest")
    claimed = [store.claim(_request(topics=frozenset({a}), limit=1)) for _ in range(4)]
    held, late, dead, done = [each.receipt for each in claimed if each]
    store.settle(late, [Setback(Range(a, 1, 1), NOW + 99, "busy")], NOW, finished=True)
    store.settle(dead, [Setback(Range(a, 2, 1), None, "broken")], NOW, finished=True)
    store.ack(done, NOW)
    assert store.stored_bytes(a) == 32, "8 bodies of 4 bytes"
    step = store.clean(a, 0, NOW + 6, 0, runs=5)
    assert (step.messages, step.bytes, step.next) == (2, 8, 5), f"of 5 runs, 3 are in flight: {step}"
    step = store.clean(a, 5, NOW + 6, 0, runs=5)
    assert (step.messages, step.next) == (1, None), f"only what was sent before: {step}"
    assert _offsets(store.scan(a, 0, None, runs=99)) == {a: [0, 1, 2, 6, 7]}, "not what is in flight, and what is new"
    assert _offsets(store.scan(b, 0, None, runs=99)) == {b: [*range(8)]}, "another topic was touched"
    assert (store.lag("idle"), _offsets(_drain(store, "idle"))) == (2, {a: [6, 7]}), "a group waits for what is gone"
    assert _offsets(store.read(held)) == {a: [0]}, "what is in flight cannot be read"
    step = store.clean(a, 0, 0, 8, runs=99)
    assert (step.messages, step.bytes) == (2, 8), f"8 bytes too many are 2 messages: {step}"
    store.ack(held, NOW)


def groups_go_on_behind_what_is_gone(open_one: Open) -> None:
    store = open_one()
    a, b = _create(store, "a", "b")
    store.append([*_run(a, 3), *_run(b, 3)], NOW)
    _subscribe_all(store)
    store.subscribe("late", [a], "earliest")
    store.clean(a, 0, NOW + 1, 0, runs=9)
    store.append(_run(a, 1), NOW)
    for group in ("g", "late"):
        store.skip_deleted(group)
    assert (store.lag("g"), store.lag("late")) == (4, 1), "lag counts what is gone"
    assert _offsets(_drain(store)) == {a: [3], b: [0, 1, 2]}, "not everything that is there"
    store.skip_deleted("g")
    assert store.append(_run(a, 1), NOW) == [4], "offsets must not come again"


def states_tell_what_is_where(open_one: Open) -> None:
    store = open_one()
    a, b = _create(store, "a", "b")
    for second in range(2):
        store.append(_run(a, 5), NOW + second)
    store.set_rule(b, "read-only")
    _subscribe_all(store)
    assert store.topic_states(NOW + 1) == [
        TopicState("a", "read-write", 10, 10, 40, NOW, NOW + 1, 5),
        TopicState("b", "read-only", 0, 0, 0, None, None, 0),
    ], "the states of the topics are wrong"
    store.beat(OTHER, "g", 5, NOW)
    store.beat(OTHER, "g", 3, NOW + 1)
    assert store.client_states() == [ClientState(OTHER, "g", 3, NOW + 1, 0, None, False)], "not who is there"
    receipt, _ = _receive(store, client=_dead(CLIENT), limit=6, now=NOW + 2)
    setbacks = [Setback(Range(a, 0, 2), NOW + 9, "busy"), Setback(Range(a, 2, 1), None, "broken")]
    store.settle(receipt, setbacks, NOW + 2, finished=False)
    assert store.group_states() == [GroupState("g", "a", 6, 10, 3, 2, 1), GroupState("g", "b", 0, 0, 0, 0, 0)], (
        "the states of the groups are wrong"
    )
    assert store.lag("g") == sum(state.lag for state in store.group_states()), "lag is told in two ways"
    assert sorted(store.client_states(), key=lambda state: state.claimed) == [
        ClientState(OTHER, "g", 3, NOW + 1, 0, None, False),
        ClientState(_dead(CLIENT), "g", 0, None, 3, NOW + 2, True),
    ], "not who is there and who has something in flight"
    store.hand_back(OTHER)
    assert [state.client for state in store.client_states()] == [_dead(CLIENT)], "who has gone is still there"


def a_trace_tells_what_became_of_a_message(open_one: Open) -> None:
    store = open_one()
    (topic,) = _create(store, "t")
    store.append([run._replace(sender='["host/1", "x", "y"]') for run in _run(topic, 2)], NOW)
    _subscribe_all(store)
    store.subscribe("late", None, "earliest")
    first, _ = _receive(store, limit=2)
    store.settle(first, [Setback(Range(topic, 1, 1), NOW + 5, "busy")], NOW + 1, finished=True)
    lost = store.claim(_request(client=_dead(CLIENT), now=NOW + 5))
    again, _ = _receive(store, limit=2, now=NOW + 6)
    found = store.trace(topic, 1)
    assert (found.sent, found.sender, found.thread) == (NOW, "host/1", "y"), "not who sent it"
    assert found.standing == {"g": "in flight", "late": "not yet"}, "not what it is to each group"
    store.settle(again, [Setback(Range(topic, 1, 1, 3), None, "broken")], NOW + 7, finished=True)
    found = store.trace(topic, 1)
    assert lost and [(d.attempts, d.claimed, d.ended, d.outcome) for d in found.deliveries] == [
        (1, NOW, NOW + 1, "refused"),
        (2, NOW + 5, NOW + 6, "lost"),
        (3, NOW + 6, NOW + 7, "dead"),
    ], "not every delivery and its end"
    assert {d.client for d in found.deliveries} == {CLIENT, _dead(CLIENT)}, "not to whom"
    assert (found.deliveries[2].cause, found.standing["g"]) == ("broken", "dead"), "not what came of it"
    (other,) = store.trace(topic, 0).deliveries
    assert (other.outcome, store.trace(topic, 0).standing["g"]) == ("acked", "done"), "not what became of the other"


RULES: tuple[tuple[Rule, bool, bool], ...] = (  # writable, readable
    ("write-only", True, False),
    ("read-only", False, True),
    ("closed", False, False),
    ("read-write", True, True),
)

CHECKS: tuple[Check, ...] = (
    offsets_are_dense_under_concurrency,
    runs_of_one_append_follow_each_other,
    a_refused_append_stores_nothing,
    messages_come_back_as_they_were_sent,
    groups_start_where_they_are_told,
    unknown_names_are_refused,
    claims_respect_limit_and_topics,
    every_topic_gets_its_turn,
    nobody_gets_anothers_messages,
    acked_is_over,
    a_lease_protects_until_it_is_over,
    a_dead_clients_messages_go_on_at_once,
    handed_back_is_free_at_once,
    groups_do_not_disturb_each_other,
    a_topic_is_created_once,
    refused_comes_again_when_due,
    a_late_refusal_is_for_what_is_left,
    what_is_put_off_leaves_the_rest,
    dead_letters_are_kept_replayed_and_dropped,
    what_kills_its_clients_dies_in_the_end,
    an_ordered_group_has_one_claim_per_topic,
    group_options_stay_until_changed,
    positions_are_found,
    a_reset_begins_anew,
    anybody_may_look,
    rules_are_kept_on_every_call,
    settings_are_kept,
    retention_spares_what_is_in_flight,
    groups_go_on_behind_what_is_gone,
    states_tell_what_is_where,
    a_trace_tells_what_became_of_a_message,
)


def _create(store: Store, *names: str) -> list[int]:
    store.create_topics(names)
    ids = store.topics()
    return [ids[name] for name in names]


def _run(topic: int, messages: int) -> list[Run]:
    return pack(topic, [b"body"] * messages)


def _subscribe_all(store: Store) -> None:
    store.subscribe("g", None, "earliest")


def _request(
    group: str = "g",
    *,
    topics: frozenset[int] | None = None,
    limit: int = 1000,
    client: str = CLIENT,
    now: float = NOW,
) -> ClaimRequest:
    return ClaimRequest(group, topics, limit, client, now, LEASE)


def _receive(store: Store, *, client: str = CLIENT, limit: int, now: float = NOW) -> tuple[int, list[Piece]]:
    claimed = store.claim(_request(client=client, limit=limit, now=now))
    assert claimed is not None, "there were messages, and none was handed out"
    return claimed.receipt, store.read(claimed.receipt)


def _drain(store: Store, group: str = "g", *, limit: int = 1000, now: float = NOW) -> list[Piece]:
    pieces: list[Piece] = []
    while claimed := store.claim(_request(group, limit=limit, now=now)):
        pieces += store.read(claimed.receipt)
        store.ack(claimed.receipt, NOW)
    return pieces


def _offsets(pieces: Sequence[Piece]) -> dict[int, list[int]]:
    """By topic."""
    found: dict[int, list[int]] = {}
    for piece in pieces:
        found.setdefault(piece.topic, []).extend(range(piece.first, piece.first + piece.messages))
    return {topic: sorted(offsets) for topic, offsets in sorted(found.items())}


def _bodies(pieces: Sequence[Piece]) -> list[bytes]:
    return [body for piece in pieces for body in piece.bodies]


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _dead(client: str) -> str:
    """A client of this host and process that started at another time: there is no such process."""
    label, place, pid, started, unique = client.split("/")
    return "/".join((label, place, pid, str(int(started) + 1), unique))


def _in_threads(jobs: Sequence[Callable[[], object]]) -> None:
    """Run all at once, and raise what one of them raised."""
    errors: list[BaseException] = []

    def run(job: Callable[[], object]) -> None:
        try:
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@contextlib.contextmanager
def _raises(kind: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was not raised")

"""States, listeners, alerts and traces."""

from collections.abc import Sequence

from brook.alerts import Alert
from brook.claiming import Range, Setback
from brook.errors import UnknownGroup
from brook.states import AlertCount, ClientState, GroupState, ListenerState, TopicState
from brook.stores.base import KEPT_ALERTS, ListenerPlace
from brook.testing import tools
from brook.testing.tools import CLIENT, NOW, OTHER, Check, Open


def states_tell_what_is_where(open_one: Open) -> None:
    store = open_one()
    a, b = tools.create(store, "a", "b")
    for second in range(2):
        store.append(tools.run(a, 5), NOW + second)
    store.set_rule(b, "read-only")
    tools.subscribe_all(store)
    assert store.topic_states(NOW + 1) == [
        TopicState("a", "read-write", 10, 10, 40, NOW, NOW + 1, 5),
        TopicState("b", "read-only", 0, 0, 0, None, None, 0),
    ], "the states of the topics are wrong"
    store.beat(OTHER, "g", 5, NOW)
    store.beat(OTHER, "g", 3, NOW + 1)
    assert store.client_states() == [ClientState(OTHER, "g", 3, NOW + 1, 0, None, False)], "not who is there"
    receipt, _ = tools.receive(store, client=tools.dead(CLIENT), limit=6, now=NOW + 2)
    setbacks = [Setback(Range(a, 0, 2), NOW + 9, "busy"), Setback(Range(a, 2, 1), None, "broken")]
    store.settle(receipt, setbacks, NOW + 2, finished=False)
    assert store.group_states() == [GroupState("g", "a", 6, 10, 3, 2, 1), GroupState("g", "b", 0, 0, 0, 0, 0)], (
        "the states of the groups are wrong"
    )
    assert store.lag("g") == sum(state.lag for state in store.group_states()), "lag is told in two ways"
    assert sorted(store.client_states(), key=lambda state: state.claimed) == [
        ClientState(OTHER, "g", 3, NOW + 1, 0, None, False),
        ClientState(tools.dead(CLIENT), "g", 0, None, 3, NOW + 2, True),
    ], "not who is there and who has something in flight"
    store.hand_back(OTHER)
    assert [state.client for state in store.client_states()] == [tools.dead(CLIENT)], "who has gone is still there"


def listeners_are_seen(open_one: Open) -> None:
    store = open_one()
    a, b = tools.create(store, "a", "b")
    store.append(tools.run(a, 5), NOW)
    gone = tools.dead(CLIENT)
    store.tell_listeners(OTHER, [ListenerPlace(1, a, 2), ListenerPlace(1, b, 0), ListenerPlace(2, a, 5)], NOW)
    store.tell_listeners(gone, [ListenerPlace(1, a, 0)], NOW)
    store.tell_listeners(OTHER, [ListenerPlace(1, a, 4), ListenerPlace(1, b, 0)], NOW + 1)
    states = {(state.client, state.topic): state for state in store.listener_states()}
    assert states == {
        (OTHER, "a"): ListenerState(OTHER, 1, "a", 4, 5, NOW + 1, False),
        (OTHER, "b"): ListenerState(OTHER, 1, "b", 0, 0, NOW + 1, False),
        (gone, "a"): ListenerState(gone, 1, "a", 0, 5, NOW, True),
    }, "not where each of them told last that it is"
    assert len(store.listener_states()) == 3, "a listener that is no more is still there"
    store.hand_back(OTHER)
    assert [state.client for state in store.listener_states()] == [gone], "who has gone is still there"


def the_last_alerts_are_kept_and_all_are_counted(open_one: Open) -> None:
    store = open_one()
    for group in ("g", "other"):
        store.subscribe(group, None, "earliest")

    def add(alerts: Sequence[Alert]) -> None:
        for each in alerts:
            store.add_alert(each)

    many = [Alert("lost", "g", CLIENT, "x", f"{n}", NOW + n) for n in range(KEPT_ALERTS + 2)]
    tools.in_threads([lambda: add(many[::2]), lambda: add(many[1::2])])
    slow = Alert("slow", "other", CLIENT, "x", "slow", NOW + 1e6)
    store.add_alert(slow)
    kept = store.alerts(1000)
    assert kept[0] == slow and store.alerts(1) == [slow], "not the newest first"
    assert len(kept) == KEPT_ALERTS + 1, "more are kept than should be, or fewer"
    assert set(kept[1:]) <= set(many), "not as they were told"
    counts = [AlertCount("g", "lost", KEPT_ALERTS + 2), AlertCount("other", "slow", 1)]
    assert store.alert_counts() == counts, "not all are counted"
    with tools.raises(UnknownGroup):
        store.add_alert(Alert("slow", "nobody", CLIENT, "x", "slow", NOW))


def a_trace_tells_what_became_of_a_message(open_one: Open) -> None:
    store = open_one()
    (topic,) = tools.create(store, "t")
    store.append([run._replace(sender='["host/1", "x", "y"]') for run in tools.run(topic, 2)], NOW)
    tools.subscribe_all(store)
    store.subscribe("late", None, "earliest")
    first, _ = tools.receive(store, limit=2)
    store.settle(first, [Setback(Range(topic, 1, 1), NOW + 5, "busy")], NOW + 1, finished=True)
    lost = tools.claim(store, tools.request(client=tools.dead(CLIENT), now=NOW + 5))
    again, _ = tools.receive(store, limit=2, now=NOW + 6)
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
    assert {d.client for d in found.deliveries} == {CLIENT, tools.dead(CLIENT)}, "not to whom"
    assert (found.deliveries[2].cause, found.standing["g"]) == ("broken", "dead"), "not what came of it"
    (other,) = store.trace(topic, 0).deliveries
    assert (other.outcome, store.trace(topic, 0).standing["g"]) == ("acked", "done"), "not what became of the other"


CHECKS: tuple[Check, ...] = (
    states_tell_what_is_where,
    listeners_are_seen,
    the_last_alerts_are_kept_and_all_are_counted,
    a_trace_tells_what_became_of_a_message,
)

"""The state of a queue as Prometheus reads it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from brook.states import AlertCount, ClientState, GroupState, ListenerState, TopicState

Sample = tuple[Mapping[str, str], float]


def metrics_text(
    topics: Sequence[TopicState],
    groups: Sequence[GroupState],
    clients: Sequence[ClientState],
    listeners: Sequence[ListenerState],
    alerts: Sequence[AlertCount],
) -> str:
    return "".join([*_of_topics(topics), *_of_groups(groups), *_of_clients(clients, listeners), *_of_alerts(alerts)])


def _of_topics(topics: Sequence[TopicState]) -> Iterator[str]:
    for name, kind, text, field in (
        ("sent_total", "counter", "Messages ever sent to the topic.", "sent"),
        ("stored_messages", "gauge", "Messages of the topic that are stored.", "stored"),
        ("stored_bytes", "gauge", "Bytes of the topic's stored bodies.", "bytes"),
    ):
        samples = [({"topic": t.topic}, getattr(t, field)) for t in topics]
        yield from _family(f"brook_topic_{name}", kind, text, samples)


def _of_groups(groups: Sequence[GroupState]) -> Iterator[str]:
    for name, text, field in (
        ("lag", "Messages that the group is not done with.", "lag"),
        ("claimed", "Messages that the group has in flight.", "claimed"),
        ("waiting", "Messages that wait for a retry.", "waiting"),
        ("dead", "Dead letters of the group.", "dead"),
    ):
        rows = [({"group": g.group, "topic": g.topic}, getattr(g, field)) for g in groups]
        yield from _family(f"brook_group_{name}", "gauge", text, rows)


def _of_clients(clients: Sequence[ClientState], listeners: Sequence[ListenerState]) -> Iterator[str]:
    flying = [({"client": c.client, "group": c.group}, c.claimed) for c in clients]
    yield from _family("brook_client_claimed", "gauge", "Messages that the client has in flight.", flying)
    lags = [({"client": x.client, "listener": str(x.listener), "topic": x.topic}, x.lag) for x in listeners]
    yield from _family("brook_listener_lag", "gauge", "Messages that the listener is not done with.", lags)


def _of_alerts(alerts: Sequence[AlertCount]) -> Iterator[str]:
    counts = [({"group": each.group, "kind": each.kind}, each.count) for each in alerts]
    yield from _family("brook_alerts_total", "counter", "Alerts of the group, by kind.", counts)


def _family(name: str, kind: str, text: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
    for labels, value in samples:
        inside = ",".join(f'{label}="{_escaped(each)}"' for label, each in labels.items())
        yield f"{name}{{{inside}}} {value}\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

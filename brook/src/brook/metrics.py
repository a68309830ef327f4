"""The state of a queue as Prometheus reads it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from brook.states import ClientState, GroupState, TopicState

Sample = tuple[Mapping[str, str], float]


def metrics_text(topics: Sequence[TopicState], groups: Sequence[GroupState], clients: Sequence[ClientState]) -> str:
    return "".join(_lines(topics, groups, clients))


def _lines(topics: Sequence[TopicState], groups: Sequence[GroupState], clients: Sequence[ClientState]) -> Iterator[str]:
    for name, kind, text, field in (
        ("sent_total", "counter", "Messages ever sent to the topic.", "sent"),
        ("stored_messages", "gauge", "Messages of the topic that are stored.", "stored"),
        ("stored_bytes", "gauge", "Bytes of the topic's stored bodies.", "bytes"),
    ):
        samples = [({"topic": t.topic}, getattr(t, field)) for t in topics]
        yield from _family(f"brook_topic_{name}", kind, text, samples)
    for name, text, field in (
        ("lag", "Messages that the group is not done with.", "lag"),
        ("claimed", "Messages that the group has in flight.", "claimed"),
        ("waiting", "Messages that wait for a retry.", "waiting"),
        ("dead", "Dead letters of the group.", "dead"),
    ):
        rows = [({"group": g.group, "topic": g.topic}, getattr(g, field)) for g in groups]
        yield from _family(f"brook_group_{name}", "gauge", text, rows)
    flying = [({"client": c.client, "group": c.group}, c.claimed) for c in clients]
    yield from _family("brook_client_claimed", "gauge", "Messages that the client has in flight.", flying)


def _family(name: str, kind: str, text: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
    for labels, value in samples:
        inside = ",".join(f'{label}="{_escaped(each)}"' for label, each in labels.items())
        yield f"{name}{{{inside}}} {value}\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

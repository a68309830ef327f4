"""What a plan says, as frozen data. The comments that a user needs are in the fields: `docs/reference` shows them."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Any

from ackworth.plan import reader
from ackworth.plan.reader import RateOf, Reader, Wrong, key, many, one
from ackworth.plan.tree import Tree

CONSUMER = "consumer"  # as a fault's `node`: one consumer process, by chance

# What a record can tell apart: it numbers topics, producers, groups and consumers with 16 bits.
MOST = 32_767

# A body carries its identity and a checksum; see load.body.
SMALLEST_BODY = 48


@dataclass(frozen=True)
class BodySize:
    """How large bodies are: sizes and how often each is drawn, or all whole numbers of a span."""

    sizes: tuple[int, ...]
    weights: tuple[float, ...] | None = None  # None: sizes is (lowest, highest), each in between as likely

    @property
    def largest(self) -> int:
        return max(self.sizes)

    @property
    def mean(self) -> float:
        if self.weights is None:
            return (self.sizes[0] + self.sizes[-1]) / 2
        return sum(s * w for s, w in zip(self.sizes, self.weights, strict=True)) / sum(self.weights)


def _body(tree: Tree, _: str) -> BodySize:
    sizes, weights = _sizes(tree.plain())
    if not all(isinstance(s, int) and not isinstance(s, bool) for s in sizes):
        raise Wrong
    if min(sizes) < SMALLEST_BODY:
        raise Wrong(f"at least {SMALLEST_BODY} bytes, the size of the header that tells one message from another")
    if weights is not None and not all(isinstance(w, int | float) and 0 < w < sys.maxsize for w in weights):
        raise Wrong
    return BodySize(tuple(sizes), None if weights is None else tuple(float(w) for w in weights))


def _sizes(value: Any) -> tuple[list[Any], list[Any] | None]:
    match value:
        case int():
            return [value], [1]
        case {"uniform": [low, high]} if (
            len(value) == 1 and isinstance(low, int) and isinstance(high, int) and low <= high
        ):
            return [low, high], None
        case {"choice": dict(weights)} if len(value) == 1 and weights and all(k.isdecimal() for k in weights):
            return [int(k) for k in weights], list(weights.values())
    raise Wrong


BODY = Reader("a number of bytes, {uniform: [low, high]}, or {choice: {bytes: weight, ...}}", _body)


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A stretch of the load. It ends at its messages or its duration, whichever comes first."""

    name: str = key("what the report calls it", reader.text)
    messages: int | None = key("messages to send in it, by all producers together", reader.whole(1), default=None)
    duration: float | None = key("how long it lasts", reader.duration, default=None)
    rate: float | RateOf | None = key(
        "messages a second, by all producers together (open loop), or max", reader.rate, default=None
    )
    warm_up: bool = key(
        "whether it only warms up: its messages are accounted for like all others, but how fast and how late they "
        "are is not measured",
        reader.boolean,
        default=False,
    )

    def __post_init__(self) -> None:
        if self.messages is None and self.duration is None:
            raise ValueError(f"phase '{self.name}' never ends: give it messages or a duration")
        if self.duration == 0:
            raise ValueError(f"phase '{self.name}' lasts no time: give it a duration above 0s")


@dataclass(frozen=True, kw_only=True)
class Drain:
    """How the end is read: until nothing has come for a while, but not for ever."""

    quiet: float = key("the queue is empty when nothing came for so long", reader.duration, default=2.0)
    limit: float = key(
        "after so long the drain is given up and the verdict is unknown", reader.duration, default=3600.0
    )


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What is sent and who reads it."""

    topics: int = key("how many topics; a producer takes them in turn", reader.whole(1, MOST), default=1)
    body: BodySize = key("size of a body", BODY, default=BodySize((128,), (1.0,)))
    producers: int = key("how many producers", reader.whole(1, MOST), default=1)
    sends: tuple[tuple[int, ...], ...] | None = key(
        "the topics of each producer, by number, if not all; a phase's messages are shared out by how many they are",
        reader.lists,
        default=None,
    )
    groups: int = key(
        "how many consumer groups; each gets every message of its topics", reader.whole(1, MOST), default=1
    )
    reads: tuple[tuple[int, ...], ...] | None = key(
        "the topics of each group, by number, if not all", reader.lists, default=None
    )
    consumers: int = key("how many consumers in each group", reader.whole(1, MOST), default=1)
    clients: tuple[tuple[int, ...], ...] | None = key(
        "the groups that each consumer process reads for, by number, instead of `consumers`", reader.lists, default=None
    )
    broadcast: bool = key(
        "whether each group is a client of a broadcast, which gets everything and keeps its progress itself",
        reader.boolean,
        default=False,
    )
    refuse: int | None = key(
        "consumers refuse every message whose number is divisible by this, each time that it comes",
        reader.whole(1),
        default=None,
    )
    consume: str = key(
        "whether consumers run during the load, or only after it", reader.choice("during", "after"), default="during"
    )
    window: int = key("messages of a producer that may be unanswered at a time", reader.whole(1), default=4096)
    batch: int = key("messages handed to the broker at a time", reader.whole(1), default=1024)
    phases: tuple[Phase, ...] = key("the stretches of the load, one after the other", many(Phase))
    drain: Drain = key("how the end is read", one(Drain), default=Drain())

    def __post_init__(self) -> None:
        if not self.phases:
            raise ValueError("phases is empty: a load needs at least one")
        warm_ups = [phase.warm_up for phase in self.phases]
        if all(warm_ups) or warm_ups != sorted(warm_ups, reverse=True):
            raise ValueError("a phase with warm_up comes before all others, and there must be others")
        if self.batch > self.window:
            raise ValueError(
                f"batch {self.batch} is larger than window {self.window}: a batch must fit into the window"
            )
        if (consumers := len(self.consumer_groups)) > MOST:
            raise ValueError(f"{consumers:,} consumers in all: at most {MOST:,} can be told apart")
        if self.broadcast and len(self.consumer_groups) != self.groups:
            raise ValueError("broadcast is true, so each group is one client: give each group one consumer")
        if self.broadcast and self.refuse:
            raise ValueError("broadcast is true, so nothing can be refused: leave out refuse")
        self._check_lists("sends", self.sends, self.producers, "producers", self.topics, "topics")
        self._check_lists("reads", self.reads, self.groups, "groups", self.topics, "topics")
        self._check_lists("clients", self.clients, None, "clients", self.groups, "groups")
        if unread := set(range(self.groups)) - set(self.consumer_groups):
            raise ValueError(f"no client reads for group {min(unread)}, so all would be lost to it: add it to clients")

    def _check_lists(
        self, name: str, lists: tuple[tuple[int, ...], ...] | None, count: int | None, of: str, below: int, what: str
    ) -> None:
        if lists is None:
            return
        if count is not None and len(lists) != count:
            raise ValueError(f"{name} has {len(lists)} lists, there are {count} {of}: give a list for each")
        if (largest := max((n for each in lists for n in each), default=0)) >= below:
            raise ValueError(f"{name} names number {largest}, there are {below} {what}: they count from 0")

    @property
    def topics_sent(self) -> tuple[tuple[int, ...], ...]:
        """By producer."""
        return self.sends or (tuple(range(self.topics)),) * self.producers

    @property
    def topics_read(self) -> tuple[tuple[int, ...], ...]:
        """By group."""
        return self.reads or (tuple(range(self.topics)),) * self.groups

    @property
    def copies(self) -> float:
        """How many groups a message goes to, on average."""
        sent = [topic for topics in self.topics_sent for topic in topics]
        return sum(topics.count(topic) for topic in sent for topics in self.topics_read) / len(sent)

    @property
    def consumer_groups(self) -> tuple[int, ...]:
        """The group of each consumer; those of one process follow each other."""
        if self.clients is not None:
            return tuple(group for client in self.clients for group in client)
        return tuple(group for group in range(self.groups) for _ in range(self.consumers))

    @property
    def messages(self) -> int | None:
        """All messages of the load; None if a phase is bounded only by time."""
        counts = [phase.messages for phase in self.phases]
        return None if None in counts else sum(c for c in counts if c is not None)


@dataclass(frozen=True, kw_only=True)
class BrokerPlan:
    """Which broker, and how it is set up."""

    kind: str = key("which broker: see `ackworth brokers`", reader.text, default="brook-sqlite")
    topology: str = key("how many nodes, and how they are joined", reader.text, default="single")
    settings: dict[str, Any] = key(
        "the broker's own settings: see `ackworth brokers`", reader.settings, default_factory=dict
    )


@dataclass(frozen=True)
class Moment:
    """When something happens: one of these."""

    seconds: float | None = None  # after the load began
    share: float | None = None  # of the load's messages, or of its duration where messages are not counted
    messages: int | None = None  # sent so far
    rate: float | None = None  # as soon as so many messages were acked in a second


def _moment(tree: Tree, _: str) -> Moment:
    value = str(tree.value)
    found = reader.seconds(value)
    if found is not None:
        return Moment(seconds=found)
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)%", value):
        if float(match[1]) > 100:
            raise Wrong
        return Moment(share=float(match[1]) / 100)
    if match := re.fullmatch(r"(\d[\d_]*) messages", value):
        return Moment(messages=int(match[1].replace("_", "")))
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)/s", value):
        return Moment(rate=float(match[1]))
    raise Wrong


MOMENT = Reader(
    "a moment: '30s', '60%', '6000000 messages', or '50000/s' (once so many are acked in a second)", _moment
)


@dataclass(frozen=True, kw_only=True)
class FaultPlan:
    """What is broken, and when."""

    kind: str = key("which fault: see `ackworth brokers`", reader.text)
    at: Moment = key("when it strikes first", MOMENT)
    every: float | None = key("strikes again so much later, as often as `times` says", reader.duration, default=None)
    times: int | None = key("how often in all, with `every`; once if neither is there", reader.whole(1), default=None)
    within: float = key(
        "each strike is moved by a random time up to this, drawn from the seed", reader.duration, default=0.0
    )
    node: str = key(
        "the node's name, 'all', or 'random'; 'consumer' strikes one consumer process, by chance",
        reader.text,
        default="all",
    )
    down: float = key("how long the node stays down (or paused)", reader.duration, default=1.0)
    resume: bool = key("whether producers go on after it; false ends the load", reader.boolean, default=True)

    def __post_init__(self) -> None:
        if (self.times or 1) > 1 and self.every is None:
            raise ValueError(f"times is {self.times}, but nothing says how far apart: add `every`")
        if self.every is not None and self.times is None:
            raise ValueError(f"every is {self.every:g} s, but nothing says how often: add `times`")
        if self.every == 0:
            raise ValueError("every is 0 s: strikes are some time apart")


CLAIM = reader.choice("claimed", "none", "any")


@dataclass(frozen=True, kw_only=True)
class Expect:
    """What must hold: as the broker claims, none at all, or anything goes."""

    lost: str = key(
        "acked messages that never arrive; before-fault: none that was sent after the last fault",
        reader.choice("claimed", "none", "before-fault", "any"),
        default="claimed",
    )
    duplicates: str = key(
        "messages delivered twice with no fault to explain it, nor a broker's flag; explained: a flag is not enough",
        reader.choice("claimed", "none", "explained", "any"),
        default="claimed",
    )
    reordered: str = key("messages delivered after a later one", CLAIM, default="claimed")
    attempts: int | None = key(
        "a message that is refused each time is delivered exactly so often", reader.whole(1), default=None
    )
    min_throughput: float | None = key("acked messages a second, at least", reader.positive, default=None)
    max_ack_p99: float | None = key("99% of the acks come within", reader.duration, default=None)
    max_recovery: float | None = key("the first ack after each fault comes within", reader.duration, default=None)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One trial, ready to run."""

    name: str = key("the plan's name", reader.name)
    title: str = key("one line for people", reader.text)
    about: str = key("what it shows, and where it comes from", reader.text, default="")
    broker: BrokerPlan = key("which broker, and how it is set up", one(BrokerPlan), default=BrokerPlan(settings={}))
    workload: Workload = key("what is sent and who reads it", one(Workload))
    faults: tuple[FaultPlan, ...] = key("what is broken, and when", many(FaultPlan), default=())
    expect: Expect = key("what must hold", one(Expect), default=Expect())
    overview: str = key(
        "what the report begins with: a line for each trial, or a row for each broker at each setting",
        reader.choice("trials", "price"),
        default="trials",
    )
    published: tuple[dict[str, Any], ...] = key(
        "tables of the source, shown beside what was measured", reader.tables, default=()
    )

    def __post_init__(self) -> None:
        if self.workload.consume == "after" and any(fault.node == CONSUMER for fault in self.faults):
            raise ValueError("a fault strikes a consumer, but none runs yet: set workload.consume to during")
        if self.expect.attempts is not None and self.workload.refuse is None:
            raise ValueError("expect.attempts is about refused messages, but none is refused: set workload.refuse")
        for number, fault in enumerate(self.faults):
            if fault.at.messages is not None and fault.at.messages > (self.workload.messages or sys.maxsize):
                raise ValueError(
                    f"faults.{number} strikes at {fault.at.messages:,} messages, but the load has "
                    f"{self.workload.messages:,}: let it strike earlier"
                )

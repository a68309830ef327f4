"""What every driver must do: `check_driver` puts one through it, against a real broker.

Each promise is a function of its own and gets a broker that knows nothing yet.
"""

import contextlib
import select
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ackworth.driver.contract import (
    Address,
    Broadcasting,
    Driver,
    Incoming,
    Int64s,
    Outgoing,
    Receiver,
    Refusing,
    Sender,
    Waitable,
    marks_repeats,
)
from ackworth.load.body import Bodies
from ackworth.model.outcome import Outcome

TOPICS = ["topic-0", "topic-1", "topic-2"]
GROUPS = ["group-0", "group-1"]
CHOOSY = "choosy"  # a group that reads one of the topics
RUN = 0x5EED
PATIENCE = 60.0  # seconds for whatever must come


@dataclass
class Got:
    """What a receiver received: (producer, seq, topic) in order, and which were flagged as repeats."""

    topics: Int64s = field(default_factory=lambda: np.arange(len(TOPICS)))  # those that it reads
    messages: list[tuple[int, int, int]] = field(default_factory=list)
    flagged: int = 0

    def add(self, incoming: Incoming) -> None:
        checked = Bodies(RUN).check(incoming.bodies, incoming.lengths)
        assert checked.intact.all(), "a body is not what was sent"
        assert (incoming.topics < len(self.topics)).all(), "a body came from a topic that its group does not read"
        topics = self.topics[incoming.topics]
        assert (checked.topic == topics).all(), "a body came from another topic than it was sent to"
        self.messages += zip(checked.producer.tolist(), checked.seq.tolist(), topics.tolist(), strict=True)
        self.flagged += int(incoming.redelivered.sum())


def check_driver(driver: Driver, fresh_address: Callable[[], Address]) -> None:
    """Raises AssertionError at the first promise that is not kept."""
    assert driver.REASONS[0] == "" and len(driver.REASONS) > 1, "REASONS[0] is none, REASONS[1] is a time-out"
    for promise in PROMISES:
        address = fresh_address()
        driver.prepare(address, TOPICS, GROUPS)
        promise(driver, address)


def what_is_sent_is_answered_once(driver: Driver, address: Address) -> None:
    answers = _send(driver, address, 0, 1000)
    assert Counter(seq for seq, _ in answers) == Counter(range(1000))
    assert {outcome for _, outcome in answers} == {Outcome.ACKED}


def bodies_of_all_sizes_arrive_in_order(driver: Driver, address: Address) -> None:
    sizes = np.random.default_rng(1).integers(48, 5000, 700)
    _send(driver, address, 3, 700, sizes)
    got = _drain(driver, address, GROUPS[0], expected=700)
    for topic in range(len(TOPICS)):
        assert [seq for _, seq, t in got.messages if t == topic] == list(range(topic, 700, len(TOPICS)))


def each_group_gets_everything(driver: Driver, address: Address) -> None:
    _send(driver, address, 0, 100)
    for group in GROUPS:
        assert len(_drain(driver, address, group, expected=100).messages) == 100


def receivers_of_a_group_share(driver: Driver, address: Address) -> None:
    _send(driver, address, 0, 500)
    receivers = [driver.Receiver(address, TOPICS, GROUPS[0], consumer) for consumer in range(2)]
    got = Got()
    _read(receivers, got, expected=500)
    assert Counter(got.messages) == Counter((0, seq, seq % 3) for seq in range(500))


def what_is_acknowledged_does_not_come_again(driver: Driver, address: Address) -> None:
    _send(driver, address, 0, 50)
    _drain(driver, address, GROUPS[0], expected=50)
    with contextlib.closing(driver.Receiver(address, TOPICS, GROUPS[0], 1)) as receiver:
        assert receiver.receive(10, 0.2) is None, "what was acknowledged came again"


def what_is_not_acknowledged_comes_again_and_says_so(driver: Driver, address: Address) -> None:
    _send(driver, address, 0, 20)
    with contextlib.closing(driver.Receiver(address, TOPICS, GROUPS[0], 0)) as first:
        assert first.receive(100, PATIENCE) is not None, "nothing came"
    got = _drain(driver, address, GROUPS[0], expected=20)
    assert len(set(got.messages)) == 20
    assert got.flagged > 0 or not marks_repeats(driver), "a repeat was not flagged"


def preparing_again_changes_nothing(driver: Driver, address: Address) -> None:
    _send(driver, address, 0, 30)
    driver.prepare(address, TOPICS, GROUPS)
    assert len(_drain(driver, address, GROUPS[0], expected=30).messages) == 30


def a_group_reads_its_topics_alone(driver: Driver, address: Address) -> None:
    driver.prepare(address, TOPICS[1:2], [CHOOSY])
    _send(driver, address, 0, 90)
    got = _drain(driver, address, CHOOSY, expected=30, topics=[1])
    assert [seq for _, seq, _ in got.messages] == list(range(1, 90, 3)), "not the messages of its topic"


def what_is_refused_comes_again(driver: Driver, address: Address) -> None:
    if not issubclass(driver.Receiver, Refusing):
        return
    _send(driver, address, 0, 30)
    got = Got()
    with contextlib.closing(driver.Receiver(address, TOPICS, GROUPS[0], 0)) as receiver:
        first = receiver.receive(100, PATIENCE)
        assert first is not None, "nothing came"
        chosen = np.arange(len(first)) % 2 == 0
        assert isinstance(receiver, Refusing)
        receiver.refuse(first, chosen)
        again = [*_ids_of(first)[chosen], *(n for n in range(30) if n not in _ids_of(first))]
        deadline = time.monotonic() + PATIENCE
        while len(got.messages) < len(again) and time.monotonic() < deadline:
            if (incoming := receiver.receive(100, 0.05)) is not None:
                got.add(incoming)
                receiver.acknowledge(incoming)
    assert sorted(seq for _, seq, _ in got.messages) == sorted(again), "not exactly what was refused came again"
    assert got.flagged == chosen.sum(), "what was refused came again without a flag"


def every_listener_gets_everything(driver: Driver, address: Address) -> None:
    if not isinstance(driver, Broadcasting):
        return
    clients = (driver.Listener(address, TOPICS, f"client-{n}", n) for n in range(2))
    with contextlib.closing(next(clients)) as first, contextlib.closing(next(clients)) as second:
        _send(driver, address, 0, 90)
        for listener in (first, second):
            got = Got()
            _read([listener], got, expected=90)
            assert len(set(got.messages)) == 90, "a listener did not get everything"


def _ids_of(incoming: Incoming) -> Int64s:
    return Bodies(RUN).check(incoming.bodies, incoming.lengths).seq


def whoever_sleeps_is_woken(driver: Driver, address: Address) -> None:
    """Where a sender and a receiver have a descriptor, answers and messages make it readable."""
    with (
        contextlib.closing(driver.Sender(address, TOPICS, 0)) as sender,
        contextlib.closing(driver.Receiver(address, TOPICS, GROUPS[0], 0)) as receiver,
    ):
        if not (isinstance(sender, Waitable) and isinstance(receiver, Waitable)):
            return
        assert receiver.receive(10, 0) is None, "something came that was not sent"
        one = np.array([0])
        sender.send(Outgoing(0, one, Bodies(RUN).build(0, one, 0, one + 128, 1), one + 128))
        answers, incoming = 0, None
        while not answers:
            assert select.select([sender], [], [], PATIENCE)[0], "a sender is not woken by an answer"
            answers = len(sender.answers(0))
        while incoming is None:
            assert select.select([receiver], [], [], PATIENCE)[0], "a receiver is not woken by a message"
            incoming = receiver.receive(10, 0)
        receiver.acknowledge(incoming)


PROMISES: tuple[Callable[[Driver, Address], None], ...] = (
    what_is_sent_is_answered_once,
    bodies_of_all_sizes_arrive_in_order,
    each_group_gets_everything,
    receivers_of_a_group_share,
    what_is_acknowledged_does_not_come_again,
    what_is_not_acknowledged_comes_again_and_says_so,
    preparing_again_changes_nothing,
    a_group_reads_its_topics_alone,
    what_is_refused_comes_again,
    every_listener_gets_everything,
    whoever_sleeps_is_woken,
)


def _send(
    driver: Driver, address: Address, producer: int, count: int, sizes: Int64s | None = None
) -> list[tuple[int, int]]:
    """Send in batches of a hundred; the answers as (seq, outcome)."""
    sizes = np.full(count, 128) if sizes is None else sizes
    found: list[tuple[int, int]] = []
    with contextlib.closing(driver.Sender(address, TOPICS, producer)) as sender:
        for first in range(0, count, 100):
            part = sizes[first : first + 100]
            topics = np.arange(first, first + len(part)) % len(TOPICS)
            sender.send(Outgoing(first, topics, Bodies(RUN).build(producer, topics, first, part, 1), part))
            found += _answers(sender)
        while len(found) < count:
            more = _answers(sender, PATIENCE)
            assert more, f"{count - len(found)} of {count} messages were never answered"
            found += more
    return found


def _answers(sender: Sender, wait: float = 0) -> list[tuple[int, int]]:
    said = sender.answers(wait)
    return list(zip(said.seqs.tolist(), said.outcomes.tolist(), strict=True))


def _drain(driver: Driver, address: Address, group: str, expected: int, topics: Sequence[int] = (0, 1, 2)) -> Got:
    got = Got(np.array(topics))
    _read([driver.Receiver(address, [TOPICS[index] for index in topics], group, 0)], got, expected)
    return got


def _read(receivers: Sequence[Receiver], got: Got, expected: int) -> None:
    """Receive and acknowledge in turn until nothing is missing; nothing must come after that."""
    with contextlib.ExitStack() as stack:
        for receiver in receivers:
            stack.callback(receiver.close)
        deadline = time.monotonic() + PATIENCE
        while len(got.messages) < expected and time.monotonic() < deadline:
            for receiver in receivers:
                incoming = receiver.receive(64, 0.05)
                if incoming is not None:
                    got.add(incoming)
                    receiver.acknowledge(incoming)
        for receiver in receivers:
            assert receiver.receive(64, 0.1) is None, "more came than was sent"
    assert len(got.messages) == expected, f"{len(got.messages)} of {expected} messages came"

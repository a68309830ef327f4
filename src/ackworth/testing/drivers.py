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

from ackworth.driver.contract import Address, Driver, Incoming, Int64s, Outgoing, Receiver, Sender, Waitable
from ackworth.load.body import Bodies
from ackworth.model.outcome import Outcome

TOPICS = ["topic-0", "topic-1", "topic-2"]
GROUPS = ["group-0", "group-1"]
RUN = 0x5EED
PATIENCE = 20.0  # seconds for whatever must come


@dataclass
class Got:
    """What a receiver received: (producer, seq, topic) in order, and which were flagged as repeats."""

    messages: list[tuple[int, int, int]] = field(default_factory=list)
    flagged: int = 0

    def add(self, incoming: Incoming) -> None:
        checked = Bodies(RUN).check(incoming.bodies, incoming.lengths)
        assert checked.intact.all(), "a body is not what was sent"
        assert (checked.topic == incoming.topics).all(), "a body came from another topic than it was sent to"
        self.messages += zip(checked.producer.tolist(), checked.seq.tolist(), incoming.topics.tolist(), strict=True)
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
    assert got.flagged > 0, "a repeat was not flagged"


def preparing_again_changes_nothing(driver: Driver, address: Address) -> None:
    _send(driver, address, 0, 30)
    driver.prepare(address, TOPICS, GROUPS)
    assert len(_drain(driver, address, GROUPS[0], expected=30).messages) == 30


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


def _drain(driver: Driver, address: Address, group: str, expected: int) -> Got:
    got = Got()
    _read([driver.Receiver(address, TOPICS, group, 0)], got, expected)
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

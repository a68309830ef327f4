"""Messages to send, and what was said of them and received, in forms that are easily compared."""

import signal
from typing import Any

import numpy as np

from ackworth.broker.contract import Node
from ackworth.broker.process import send, stop_and_wait
from ackworth.driver.contract import Answers, ConnectionLost, Driver, Incoming, Outgoing, Sender
from ackworth.load.body import Bodies
from ackworth.testing import drivers
from ackworth.testing.drivers import TOPICS


def batch(first: int, count: int, size: int = 100) -> Outgoing:
    topics, sizes = np.arange(first, first + count) % len(TOPICS), np.full(count, size)
    return Outgoing(first, topics, Bodies(drivers.RUN).build(0, topics, first, sizes, 1), sizes)


def body(seq: int, size: int = 100) -> bytes:
    return batch(seq, 1, size).bodies[0].tobytes()[:size]


def all_answers(sender: Sender, count: int) -> list[Answers]:
    found: list[Answers] = []
    while sum(map(len, found)) < count:
        found.append(sender.answers(drivers.PATIENCE))
        assert len(found[-1]), "no answer in time"
    return found


def until_lost(sender: Sender) -> tuple[dict[int, int], ConnectionLost]:
    """The outcome of each seq that was answered until the connection was lost, and how it was."""
    found: list[Answers] = []
    while True:
        try:
            found.append(sender.answers(drivers.PATIENCE))
        except ConnectionLost as lost:
            return outcomes([*found, lost.answers]), lost


def outcomes(found: list[Answers]) -> dict[int, int]:
    """The outcome of each seq."""
    return {s: o for a in found for s, o in zip(a.seqs.tolist(), a.outcomes.tolist(), strict=True)}


def reasons(driver: Driver, found: list[Answers]) -> set[tuple[int, str]]:
    pairs = {pair for a in found for pair in zip(a.outcomes.tolist(), a.reasons.tolist(), strict=True)}
    return {(outcome, driver.REASONS[reason]) for outcome, reason in pairs}


def seqs(incoming: Incoming | None) -> list[int]:
    assert incoming is not None, "nothing came"
    checked = Bodies(drivers.RUN).check(incoming.bodies, incoming.lengths)
    assert checked.intact.all()
    return sorted(checked.seq.tolist())


def assert_forgets_what_a_server_said_before_it_stalled(receiver: Any, node: Node) -> None:
    while not receiver.told_empty:
        assert receiver.receive(10, 0.1) is None
    stop_and_wait(node.processes())
    while receiver.told_empty:  # it asks again, and is not answered
        assert receiver.receive(10, 0.1) is None
    send(node.processes(), signal.SIGCONT)

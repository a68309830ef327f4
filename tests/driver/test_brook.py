"""Brook's driver keeps what every driver promises, and the suite notices one that does not."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import brook
from ackworth.driver import brook as driver
from ackworth.driver.contract import Address, ConnectionLost, Incoming, Outgoing
from ackworth.driver.wire import Deadline
from ackworth.load.body import Bodies
from ackworth.model.outcome import Outcome
from ackworth.testing import drivers
from ackworth.testing.drivers import GROUPS, TOPICS, check_driver
from tests.driver.messages import batch


@pytest.fixture
def fresh(tmp_path: Path) -> Callable[[], Address]:
    numbers = itertools.count()
    rest = {"durability": "off", "retries": "quick", "patience": 30.0}
    return lambda: {"urls": [f"sqlite:///{tmp_path}/{next(numbers)}.db"], **rest}


def test_it_keeps_every_promise(fresh: Callable[[], Address]) -> None:
    check_driver(driver, fresh)


def test_what_a_connection_that_broke_has_claimed_is_still_to_come(fresh: Callable[[], Address]) -> None:
    """Its process lives, so nobody else gets it before the lease is over."""
    address = fresh()
    driver.prepare(address, TOPICS, GROUPS[:1])
    sender = driver.Sender(address, TOPICS, 0)
    sender.send(batch(0, 10))
    sender.close()
    broken = driver.Receiver(address, TOPICS, GROUPS[0], 0)
    claimed = broken.receive(100, 0)
    assert claimed is not None
    receiver = driver.Receiver(address, TOPICS, GROUPS[0], 0)
    assert receiver.receive(100, 0) is None and not receiver.told_empty
    broken.close()
    again = receiver.receive(100, 0)
    assert again is not None and len(again) == 10
    receiver.acknowledge(again)
    receiver._ask_again = Deadline(0)
    assert receiver.receive(100, 0) is None and receiver.told_empty
    receiver.close()


class Forgetful(driver.Receiver):
    """Acknowledges nothing."""

    def acknowledge(self, incoming: Incoming) -> None:
        pass


class Stubborn(driver.Receiver):
    """Takes a no for a yes."""

    def refuse(self, incoming: Incoming, chosen: Any) -> None:
        self.acknowledge(incoming)


class Late(driver.Listener):
    """Misses what was sent before it first asked."""

    def receive(self, limit: int, wait: float) -> Incoming | None:
        while (missed := super().receive(limit, 0)) is not None and not hasattr(self, "asked"):
            self.acknowledge(missed)
        self.asked = True
        return super().receive(limit, wait)


class Greedy(driver.Receiver):
    """Reads every topic, whatever its group reads."""

    def __init__(self, address: Address, topics: Any, group: str, consumer: int) -> None:
        with brook.Brook(address["urls"][0]) as queue:
            queue.subscribe(group)
        super().__init__(address, TOPICS, group, consumer)


class Careless(driver.Sender):
    """Flips a bit on the way."""

    def send(self, batch: Outgoing) -> None:
        batch.bodies[0, 60] ^= 1
        super().send(batch)


class Deaf(driver.Sender):
    """Never hears an answer."""

    def answers(self, wait: float) -> Any:
        super().answers(wait)
        return driver.answered(np.empty(0, np.int64), 0)


@pytest.mark.parametrize(
    ("defect", "promise", "words"),
    [
        (Forgetful, drivers.what_is_acknowledged_does_not_come_again, "what was acknowledged came again"),
        (Stubborn, drivers.what_is_refused_comes_again, "not exactly what was refused came again"),
        (Greedy, drivers.a_group_reads_its_topics_alone, "that its group does not read"),
        (Late, drivers.every_listener_gets_everything, "messages came"),
        (Careless, drivers.bodies_of_all_sizes_arrive_in_order, "a body is not what was sent"),
        (Deaf, drivers.what_is_sent_is_answered_once, "never answered"),
    ],
)
def test_the_suite_notices_a_bad_driver(
    fresh: Callable[[], Address], monkeypatch: pytest.MonkeyPatch, defect: type, promise: Any, words: str
) -> None:
    """At the promise that it breaks; with all of them, a short patience could end before another."""
    assert promise in drivers.PROMISES
    monkeypatch.setattr(drivers, "PROMISES", [promise])
    monkeypatch.setattr(drivers, "PATIENCE", 1.0)
    monkeypatch.setattr(driver, defect.__base__.__name__, defect)
    with pytest.raises(AssertionError, match=words):
        check_driver(driver, fresh)


def test_a_definite_no_is_refused_and_all_else_is_unknown(
    fresh: Callable[[], Address], monkeypatch: pytest.MonkeyPatch
) -> None:
    address = fresh()
    driver.prepare(address, TOPICS, GROUPS)
    sender = driver.Sender(address, TOPICS, 0)
    topics, sizes = np.zeros(3, np.int64), np.full(3, 64)
    batch = Outgoing(0, topics, Bodies(1).build(0, topics, 0, sizes, 1), sizes)

    def raising(error: Exception) -> Callable[..., Any]:
        def append_runs(*_: object) -> Any:
            raise error

        return append_runs

    monkeypatch.setattr(brook.Brook, "append_runs", raising(brook.DatabaseFull("full")))
    sender.send(batch)
    answers = sender.answers(0)
    assert answers.outcomes.tolist() == [Outcome.REFUSED] * 3
    assert driver.REASONS[answers.reasons[0]] == "the database refused it"
    monkeypatch.setattr(brook.Brook, "append_runs", raising(brook.StoreFailed("midway")))
    with pytest.raises(ConnectionLost) as lost:
        sender.send(batch)
    assert driver.REASONS[lost.value.reason] == "the database failed midway"
    sender.close()


@pytest.mark.parametrize("client", [driver.Sender, driver.Receiver, driver.Listener])
def test_a_queue_that_has_lost_its_topics_is_no_connection(fresh: Callable[[], Address], client: Any) -> None:
    arguments = (fresh(), TOPICS, 0) if client is driver.Sender else (fresh(), TOPICS, GROUPS[0], 0)
    with pytest.raises(ConnectionLost, match=f"the topic {min(TOPICS)} is not there"):
        client(*arguments)


@pytest.mark.parametrize("client", [driver.Sender, driver.Receiver, driver.Listener])
def test_a_queue_that_fails_while_one_enters_is_no_connection(
    fresh: Callable[[], Address], client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(queue: brook.Brook) -> dict[str, int]:
        raise brook.StoreFailed("gone again")

    monkeypatch.setattr(brook.Brook, "topics", fail)
    arguments = (fresh(), TOPICS, 0) if client is driver.Sender else (fresh(), TOPICS, GROUPS[0], 0)
    with pytest.raises(ConnectionLost, match="gone again"):
        client(*arguments)

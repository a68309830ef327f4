"""What every broker that is a server does, whatever it is told."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ackworth.broker import registry
from ackworth.broker.contract import Broker, Node, Place
from ackworth.broker.process import wait_until
from ackworth.driver.contract import ConnectionLost, Driver, load
from ackworth.model.errors import BrokerFailed
from ackworth.testing import drivers
from ackworth.testing.drivers import GROUPS, TOPICS
from ackworth.testing.nodes import Running, running
from tests.conftest import had
from tests.driver.messages import all_answers, batch, seqs

pytestmark = pytest.mark.real

SERVERS = [broker for broker in registry.brokers().values() if not broker.embedded]


@pytest.fixture(scope="module", params=SERVERS, ids=lambda broker: broker.name)
def broker(request: pytest.FixtureRequest) -> Broker:
    return had(request.param)


@pytest.fixture(scope="module")
def server(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(broker, tmp_path_factory.mktemp(broker.name)) as found:
        yield found


def test_it_says_its_version(broker: Broker) -> None:
    assert any(character.isdigit() for character in broker.version())


def test_a_port_that_was_taken_is_a_failure_with_its_words(broker: Broker, server: Running, tmp_path: Path) -> None:
    place = Place(data=tmp_path / "data", logs=tmp_path, ports=server.place.ports)
    place.data.mkdir()
    [node] = broker.build({server.node.name: place}, registry.settle(broker, {}))
    node.start()
    try:
        wait_until(lambda: re.search("already.(in.)?use", failure(node)), 120, "it fails")
        wait_until(lambda: node.processes() == [], 60, "nothing of it is left")
    finally:
        node.stop()
    server.wait_until_ready()  # whatever the other did, this one still runs


def failure(node: Node) -> str:
    try:
        node.look()
    except BrokerFailed as error:
        return str(error)
    return ""


def test_an_orderly_stop_keeps_everything(server: Running) -> None:
    driver = load(server.driver)
    driver.prepare(server.address, TOPICS, GROUPS)
    with contextlib.closing(driver.Sender(server.address, TOPICS, 0)) as sender:
        sender.send(batch(0, 9))
        all_answers(sender, 9)
    for _ in range(2):
        server.node.stop()
        assert server.node.processes() == []
        server.node.start()
        server.wait_until_ready()
        if came := nine_that_come(driver, server):
            break
        # A restart may leave quorum queues of RabbitMQ 3.10 without a leader: they have all, and give nothing.
    assert sorted(came) == list(range(9))


def nine_that_come(driver: Driver, server: Running) -> list[int]:
    """None, if none comes."""
    came: list[int] = []
    with (
        contextlib.suppress(ConnectionLost),
        contextlib.closing(driver.Receiver(server.address, TOPICS, GROUPS[0], 0)) as receiver,
    ):
        while len(came) < 9 and (incoming := receiver.receive(9, drivers.PATIENCE)) is not None:
            came += seqs(incoming)
            receiver.acknowledge(incoming)
    return came

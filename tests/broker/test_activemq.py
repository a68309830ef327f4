"""ActiveMQ as a broker: what it is told, what it claims, and that it comes back with what it kept."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from ackworth.broker import activemq
from ackworth.broker.activemq import BROKER, configuration
from ackworth.broker.contract import Installable, Place
from ackworth.broker.process import wait_until
from ackworth.driver import stomp
from ackworth.model.errors import BrokerFailed
from ackworth.testing.drivers import GROUPS, TOPICS
from ackworth.testing.nodes import running
from tests.conftest import had
from tests.driver.messages import all_answers, batch, seqs


@pytest.mark.parametrize("sync", ["always", "periodic", "never"])
def test_it_is_told_where_and_how(tmp_path: Path, sync: str) -> None:
    odd = tmp_path / "a 'quoted' \"name\" & more"
    told = ElementTree.fromstring(configuration(Place(data=odd, logs=odd, ports={"stomp": 20_001}), sync))
    [store] = [element for element in told.iter() if element.tag.endswith("kahaDB")]
    assert store.attrib == {"directory": str(odd), "journalDiskSyncStrategy": sync}
    [connector] = [element for element in told.iter() if element.tag.endswith("transportConnector")]
    assert connector.attrib["uri"] == "stomp+nio://127.0.0.1:20001"


@pytest.mark.parametrize(("sync", "survives"), [("always", True), ("periodic", False), ("never", False)])
def test_only_always_claims_to_survive_a_power_cut(sync: str, survives: bool) -> None:
    claims = BROKER.claims({"sync": sync}).survives
    assert ("power-cut" in claims) == ("kill" in claims) == survives
    assert "sigterm" in claims


def test_one_that_is_missing_says_how_to_have_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(activemq, "HOME", tmp_path / "nowhere")
    assert str(BROKER.missing()).endswith("is not installed: run `ackworth brokers install activemq`")
    assert isinstance(BROKER, Installable)


@pytest.mark.real
def test_an_orderly_stop_keeps_everything(tmp_path: Path) -> None:
    with running(had(BROKER), tmp_path, sync="never") as found:
        stomp.prepare(found.address, TOPICS, GROUPS)
        sender = stomp.Sender(found.address, TOPICS, 0)
        sender.send(batch(0, 9))
        all_answers(sender, 9)
        sender.close()
        found.node.stop()
        found.node.start()
        found.wait_until_ready()
        receiver = stomp.Receiver(found.address, TOPICS, GROUPS[0], 0)
        came: list[int] = []
        while len(came) < 9:
            came += seqs(receiver.receive(9, 10))
        assert sorted(came) == list(range(9))
        receiver.close()
        assert BROKER.version().startswith("ActiveMQ 5.")


@pytest.mark.real
def test_a_port_that_was_taken_is_a_failure_with_its_words(tmp_path: Path) -> None:
    with running(had(BROKER), tmp_path / "one", sync="never") as one:
        other = Place(data=tmp_path / "other", logs=tmp_path, ports=one.place.ports)
        node = BROKER.node("activemq", other, {"sync": "never"})
        node.start()

        def failed() -> bool:
            try:
                node.look()
            except BrokerFailed as error:
                return "Address already in use" in str(error)
            return False

        wait_until(failed, 30, "it fails")
        node.stop()
        one.wait_until_ready()  # whatever the other did, this one still runs

"""ActiveMQ as a broker: what it is told, what it claims, and that it comes back with what it kept."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from ackworth.broker import activemq
from ackworth.broker.activemq import BROKER, configuration
from ackworth.broker.contract import Installable, Place


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

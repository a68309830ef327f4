"""Kafka as a broker: what it is told, what it claims, and what is said when it is not there."""

from pathlib import Path

import pytest

from ackworth.broker import registry
from ackworth.broker.contract import Installable, Place
from ackworth.broker.kafka import BROKER, JARS, configuration


def told(tmp_path: Path, flush_messages: int | str) -> dict[str, str]:
    place = Place(data=tmp_path, logs=tmp_path, ports={"client": 20_001, "controller": 20_002})
    text = configuration(place, registry.settle(BROKER, {"flush_messages": flush_messages}))
    return dict(line.split("=", 1) for line in text.splitlines())


def test_it_is_told_where_and_how(tmp_path: Path) -> None:
    lines = told(tmp_path, 1)
    assert lines["listeners"] == "CLIENT://127.0.0.1:20001,CONTROLLER://127.0.0.1:20002"
    assert lines["log.flush.interval.messages"] == "1"
    assert "log.flush.interval.messages" not in told(tmp_path, "never")


@pytest.mark.parametrize(
    ("acks", "flush_messages", "survives"),
    [
        ("idempotent", 1, {"kill", "pause", "power-cut", "sigterm"}),
        ("all", "never", {"kill", "pause", "sigterm"}),
        (1, 1, {"kill", "pause", "power-cut", "sigterm"}),
        (0, 1, {"pause"}),
    ],
)
def test_it_claims_what_its_settings_allow(acks: str | int, flush_messages: int | str, survives: set[str]) -> None:
    assert BROKER.claims({"acks": acks, "flush_messages": flush_messages}).survives == survives


def test_one_that_is_missing_says_how_to_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert BROKER.missing() == f"{JARS.folder} is not installed: run `ackworth brokers install kafka`"
    assert isinstance(BROKER, Installable)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "there is no Java" in str(BROKER.missing())
    monkeypatch.setattr("ackworth.broker.kafka.find_spec", lambda name: None)
    assert "confluent-kafka: pip install" in str(BROKER.missing())

"""NATS as a broker: what it is told, what it claims, and that it comes back with what it kept."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from ackworth.broker import nats_jetstream
from ackworth.broker.contract import Installable, Place, Selective
from ackworth.broker.nats_jetstream import BROKER, configuration
from ackworth.broker.registry import levels
from ackworth.cli.choice import to_be_had
from ackworth.cli.progress import Progress
from ackworth.model.errors import Unavailable


@pytest.fixture
def place(tmp_path: Path) -> Place:
    odd = tmp_path / 'a "quoted" name'
    odd.mkdir()
    return Place(data=odd, logs=odd, ports={"client": 20_001})


@pytest.fixture
def is_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    def pretend(version: str) -> None:
        program = tmp_path / "some-nats-server"
        program.write_text(f"#!/bin/sh\necho nats-server: v{version}\n")
        program.chmod(0o755)
        monkeypatch.setattr(nats_jetstream, "PROGRAM", str(program))

    return pretend


def test_it_is_told_where_and_how(place: Place) -> None:
    told = {"host": "127.0.0.1", "port": 20_001, "jetstream": {"store_dir": str(place.data)}}
    assert json.loads(configuration(place, "2m")) == told
    assert json.loads(configuration(place, "always"))["jetstream"]["sync_interval"] == "always"


def test_only_always_claims_to_survive_a_power_cut() -> None:
    assert "power-cut" not in BROKER.claims({"sync": "2m"}).survives
    assert BROKER.claims({"sync": "always"}).survives - BROKER.claims({"sync": "2m"}).survives == {"power-cut"}


def test_one_that_is_missing_says_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nats_jetstream, "PROGRAM", "no-such-nats")
    assert BROKER.missing() == "no-such-nats is not installed: run `ackworth brokers install nats-jetstream`"
    assert isinstance(BROKER, Installable)


def test_a_version_that_cannot_always_sync_says_so(place: Place, is_version: Callable[[str], None]) -> None:
    is_version("2.9.10")
    assert BROKER.version() == "nats-server 2.9.10"
    with pytest.raises(
        Unavailable, match=r"nats-server 2.9.10 cannot sync before every ack: put 2.10 or later on PATH"
    ):
        BROKER.node("nats", place, {"sync": "always"})
    assert BROKER.node("nats", place, {"sync": "2m"})
    assert isinstance(BROKER, Selective) and BROKER.lacks({"sync": "2m"}) is None


def test_a_price_list_leaves_out_what_cannot_be_had(is_version: Callable[[str], None]) -> None:
    class Said(Progress):
        lines: ClassVar[list[str]] = []

        def say(self, line: str) -> None:
            self.lines.append(line)

    is_version("2.9.10")
    assert to_be_had(BROKER, levels(BROKER), Said(quiet=False)) == [{"sync": "2m"}]
    [line] = Said.lines
    assert line.startswith("nats-jetstream sync=always: left out: nats-server 2.9.10 cannot sync")
    is_version("2.10.0")
    assert to_be_had(BROKER, levels(BROKER), Said(quiet=False)) == [{"sync": "2m"}, {"sync": "always"}]


@pytest.mark.parametrize("version", ["2.10.0", "2.12.1-RC.1", "3.0.0"])
def test_a_version_that_can_is_told(place: Place, is_version: Callable[[str], None], version: str) -> None:
    is_version(version)
    BROKER.node("nats", place, {"sync": "always"})
    assert "sync_interval" in (place.logs / "nats.conf").read_text()

"""RabbitMQ as a broker: what it is told, what it claims, and that nothing of Erlang outlives it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ackworth.broker.contract import Installable, Place
from ackworth.broker.process import states, wait_until
from ackworth.broker.rabbitmq import BROKER, configuration, environment
from ackworth.fault.kill import FAULT as KILL
from ackworth.testing.nodes import running
from tests.conftest import had

PORTS = {"client": 20_001, "epmd": 20_002, "distribution": 20_003}


def test_it_is_told_where_and_how(tmp_path: Path) -> None:
    place = Place(data=tmp_path / "data", logs=tmp_path / "logs", ports=PORTS)
    assert configuration(place).splitlines()[0] == "listeners.tcp.1 = 127.0.0.1:20001"
    told = environment("rabbit", place, tmp_path / "file")
    assert told["ERL_EPMD_PORT"] == "20002" and told["RABBITMQ_DIST_PORT"] == "20003"
    survives = [name for name, value in told.items() if value.startswith(str(place.data))]
    assert survives == ["RABBITMQ_MNESIA_BASE"]


def test_two_nodes_do_not_share_a_cookie(tmp_path: Path) -> None:
    place = Place(data=tmp_path, logs=tmp_path, ports=PORTS)
    assert len({environment("rabbit", place, tmp_path)["ERL_FLAGS"] for _ in range(2)}) == 2


@pytest.mark.parametrize("queue", BROKER.settings["queue"].values)
def test_every_kind_of_queue_claims_to_survive_a_power_cut(queue: str) -> None:
    assert {"power-cut", "kill"} <= BROKER.claims({"queue": queue}).survives


def test_one_that_is_missing_says_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ackworth.broker.rabbitmq.PROGRAM", Path("/no/such/rabbit"))
    assert BROKER.missing() == "/no/such/rabbit is not installed: run `ackworth brokers install rabbitmq`"
    assert isinstance(BROKER, Installable)


def names(pids: list[int]) -> set[str]:
    return {Path(f"/proc/{pid}/comm").read_text().strip() for pid in pids}


@pytest.mark.real
def test_two_nodes_do_not_disturb_each_other(tmp_path: Path) -> None:
    with running(had(BROKER), tmp_path / "one") as one, running(had(BROKER), tmp_path / "other") as other:
        all_of_it = one.node.processes()
        assert {"beam.smp", "epmd", "erl_child_setup", "inet_gethost"} <= names(all_of_it)
        KILL.strike(one.node, None)
        assert one.node.processes() == [] and all(states(pid) <= set("ZX") for pid in all_of_it)
        other.wait_until_ready()
        assert BROKER.version().startswith("RabbitMQ 3.")


STARTER = """
import sys
from pathlib import Path
from ackworth.broker.rabbitmq import BROKER
from ackworth.testing.nodes import running
from tests.conftest import had
with running(BROKER, Path(sys.argv[1])) as found:
    print(*found.node.processes(), flush=True)
    sys.stdin.read()
"""


@pytest.mark.real
def test_all_of_it_dies_with_whoever_started_it(tmp_path: Path) -> None:
    had(BROKER)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", STARTER, str(tmp_path / "node")]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdout is not None
        pids = [int(word) for word in starter.stdout.readline().split()]
        assert len(pids) > 3
        starter.send_signal(signal.SIGKILL)
    wait_until(lambda: all(states(pid) <= set("ZX") for pid in pids), 60, "nothing of it runs")

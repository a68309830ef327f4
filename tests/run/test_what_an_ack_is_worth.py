"""Trials in which a setting makes the difference: what is not kept is seen, and held against what is claimed."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ackworth.broker import registry
from ackworth.broker.process import descendants
from ackworth.plan import resolve
from ackworth.plan.tree import parse
from ackworth.run.conductor import Conductor
from tests.conftest import had
from tests.run.test_conductor import Silent, Told, assert_nothing_lost
from tests.run.test_server_broker import judged, lost

pytestmark = pytest.mark.real

PLAN = """
name: tiny
title: a tiny plan with a fault in the middle
broker: {{kind: {broker}}}
workload:
  topics: 4
  producers: 2
  consumers: 2
  window: 1000
  batch: 250
  consume: after
  drain: {{quiet: 300ms}}
  phases: [{{name: send, messages: 10_000, rate: 5_000}}]
faults: [{{kind: {fault}, at: 50%, down: 50ms}}]
"""

Conduct = Callable[..., Told]


@pytest.fixture
def conduct(tmp_path: Path) -> Iterator[Conduct]:
    def run(broker: str, settings: str, fault: str) -> Told:
        had(registry.find(broker))
        plan = parse(PLAN.format(broker=broker, fault=fault), "tiny.yaml")
        (trial,) = resolve.trials(plan, "small", [f"broker.settings={settings}"])
        directory = tmp_path / "trial"
        return Told(directory, Conductor(trial, directory, "00000000000000aa", 7, Silent()).run())

    yield run
    assert descendants(os.getpid()) == []
    assert str(tmp_path) not in subprocess.run(["losetup", "-a"], capture_output=True, text=True, check=True).stdout
    assert [process for process in Path("/proc").glob("[0-9]*") if mentions(process, tmp_path)] == []


def mentions(process: Path, folder: Path) -> bool:
    """Whether a process was started for a folder, by its environment."""
    try:
        return str(folder).encode() in (process / "environ").read_bytes()
    except OSError:
        return False


def test_a_classic_queue_of_rabbitmq_survives_a_kill(conduct: Conduct) -> None:
    told = conduct("rabbitmq", "{queue: classic-v1}", "kill")
    assert_nothing_lost(told, 10_000)
    assert told.marks("fault") == told.marks("ready") == ["kill"]
    assert told.marks("worker-died") == []
    assert judged(told)["verdict"] == "held"


def test_a_classic_queue_of_version_2_does_not_survive_a_power_cut(conduct: Conduct, own_mounts: None) -> None:
    """RabbitMQ 3.10 confirms what it has written there, and not synced; its documentation claims more."""
    told = conduct("rabbitmq", "{queue: classic-v2}", "power-cut")
    assert told.end.problems == () and told.end.drained
    assert lost(told) > 1000
    assert judged(told)["verdict"] == "broken"


def test_what_an_idempotent_sender_sends_again_is_stored_once(conduct: Conduct) -> None:
    told = conduct("kafka", "{acks: idempotent, flush_messages: never}", "kill")
    assert_nothing_lost(told, 10_000)
    assert set(told.ids("delivered").values()) == {1}
    assert judged(told)["verdict"] == "held"


def test_a_power_cut_takes_what_kafka_did_not_sync_and_did_not_claim(conduct: Conduct, own_mounts: None) -> None:
    told = conduct("kafka", "{acks: all, flush_messages: never}", "power-cut")
    assert told.end.problems == () and told.end.drained
    assert lost(told) > 1000
    assert judged(told)["verdict"] == "held"

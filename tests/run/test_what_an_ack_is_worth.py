"""Power cuts at settings that do not survive them: what is lost is seen, and held against what is claimed."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ackworth.broker import registry
from ackworth.plan import resolve
from ackworth.plan.tree import parse
from ackworth.run.conductor import Conductor
from tests.conftest import had
from tests.run.test_conductor import Silent, Told
from tests.run.test_server_broker import judged, lost

pytestmark = pytest.mark.real

PLAN = """
name: tiny
title: a tiny plan with a power cut in the middle
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
faults: [{{kind: power-cut, at: 50%, down: 50ms}}]
"""

Conduct = Callable[..., Told]


@pytest.fixture
def conduct(tmp_path: Path, own_mounts: None, no_process_left: None) -> Iterator[Conduct]:
    def run(broker: str, settings: str) -> Told:
        had(registry.find(broker))
        plan = parse(PLAN.format(broker=broker), "tiny.yaml")
        (trial,) = resolve.trials(plan, "small", [f"broker.settings={settings}"])
        directory = tmp_path / "trial"
        return Told(directory, Conductor(trial, directory, "00000000000000aa", 7, Silent()).run())

    yield run
    assert str(tmp_path) not in subprocess.run(["losetup", "-a"], capture_output=True, text=True, check=True).stdout
    assert [process for process in Path("/proc").glob("[0-9]*") if mentions(process, tmp_path)] == []


def mentions(process: Path, folder: Path) -> bool:
    """Whether a process was started for a folder, by its environment."""
    try:
        return str(folder).encode() in (process / "environ").read_bytes()
    except OSError:
        return False


def test_a_classic_queue_of_version_2_does_not_survive_a_power_cut(conduct: Conduct) -> None:
    """RabbitMQ 3.10 confirms what it has written there, and not synced; its documentation claims more."""
    told = conduct("rabbitmq", "{queue: classic-v2}")
    assert told.end.problems == () and told.end.drained
    assert lost(told) > 1000
    assert judged(told)["verdict"] == "broken"


def test_a_power_cut_takes_what_kafka_did_not_sync_and_did_not_claim(conduct: Conduct) -> None:
    told = conduct("kafka", "{acks: all, flush_messages: never}")
    assert told.end.problems == () and told.end.drained
    assert lost(told) > 1000
    assert judged(told)["verdict"] == "held"

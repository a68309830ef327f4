"""Trials with RabbitMQ's classic queues: what is not kept is seen, and nothing of Erlang stays behind."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ackworth.broker.process import descendants
from ackworth.broker.rabbitmq import BROKER
from ackworth.plan import resolve
from ackworth.plan.tree import parse
from ackworth.run.conductor import Conductor
from tests.conftest import had
from tests.run.test_conductor import Silent, Told, assert_nothing_lost
from tests.run.test_server_broker import judged, lost

pytestmark = pytest.mark.real

PLAN = """
name: tiny
title: a tiny plan with RabbitMQ
broker: {kind: rabbitmq}
workload:
  topics: 4
  producers: 2
  consumers: 2
  window: 1000
  batch: 250
  drain: {quiet: 300ms}
  phases: [{name: send, messages: 10_000, rate: 5_000}]
"""

Conduct = Callable[..., Told]


@pytest.fixture
def conduct(tmp_path: Path) -> Iterator[Conduct]:
    had(BROKER)

    def run(*sets: str) -> Told:
        (trial,) = resolve.trials(parse(PLAN, "tiny.yaml"), "small", sets)
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


def test_workers_live_through_a_kill(conduct: Conduct) -> None:
    told = conduct("faults=[{kind: kill, at: 50%, down: 50ms}]", "broker.settings.queue=classic-v1")
    assert_nothing_lost(told, 10_000)
    assert told.marks("fault") == told.marks("ready") == ["kill"]
    assert told.marks("worker-died") == []
    assert judged(told)["verdict"] == "held"


def test_a_power_cut_shows_what_a_confirm_is_worth(conduct: Conduct, own_mounts: None) -> None:
    """RabbitMQ 3.10 confirms to a classic queue of version 2 what it has written, and not synced."""
    told = conduct(
        "faults=[{kind: power-cut, at: 50%, down: 50ms}]",
        "broker.settings.queue=classic-v2",
        "workload.consume=after",
    )
    assert told.end.problems == () and told.end.drained
    assert lost(told) > 1000
    assert judged(told)["verdict"] == "broken"

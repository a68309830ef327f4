"""Trials with Kafka: what each kind of ack is worth."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ackworth.broker.kafka import BROKER
from ackworth.broker.process import descendants
from ackworth.model.outcome import Outcome
from ackworth.plan import resolve
from ackworth.plan.tree import parse
from ackworth.run.conductor import Conductor
from tests.conftest import had
from tests.run.test_conductor import Silent, Told, assert_nothing_lost
from tests.run.test_server_broker import judged, lost

pytestmark = pytest.mark.real

PLAN = """
name: tiny
title: a tiny plan with Kafka
broker: {kind: kafka}
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


def test_what_an_idempotent_sender_had_in_flight_is_answered_after_all(conduct: Conduct) -> None:
    told = conduct("faults=[{kind: kill, at: 50%, down: 50ms}]", "broker.settings.flush_messages=never")
    assert_nothing_lost(told, 10_000)
    assert len(told.ids("outcome", outcome=Outcome.ACKED)) == 10_000
    assert set(told.ids("delivered").values()) == {1}
    assert judged(told)["verdict"] == "held"


def test_a_power_cut_takes_what_was_not_synced_and_not_claimed(conduct: Conduct, own_mounts: None) -> None:
    told = conduct(
        "faults=[{kind: power-cut, at: 50%, down: 50ms}]",
        "broker.settings={acks: all, flush_messages: never}",
        "workload.consume=after",
    )
    assert told.end.problems == () and told.end.drained
    assert lost(told) > 1000
    assert judged(told)["verdict"] == "held"

"""Every broker that is a server keeps, in a trial of its own, what it claims at its default settings."""

import shutil
from pathlib import Path

import pytest

from ackworth.broker import registry
from ackworth.broker.contract import Broker
from ackworth.pipeline.trial import judge_trial
from ackworth.plan import resolve
from ackworth.plan.tree import parse
from ackworth.run.conductor import Conductor
from ackworth.testing.engine import Inline
from tests.conftest import had
from tests.run.test_conductor import Silent

pytestmark = pytest.mark.real

PLAN = """
name: tiny
title: a tiny plan with faults
broker: {{kind: {broker}}}
workload:
  topics: 16
  producers: 2
  consumers: 2
  window: 100
  batch: 25
  drain: {{quiet: 300ms}}
  phases: [{{name: send, messages: 3_000, rate: 1_500}}]
faults: [{faults}]
"""
SERVERS = [broker for broker in registry.brokers().values() if not broker.embedded]


def plan(broker: Broker) -> str:
    """One fault of each kind that it claims to survive, at equal distances."""
    kinds = sorted(broker.claims(registry.settle(broker, {})).survives)
    faults = [f"{{kind: {kind}, at: {100 * (i + 1) // (len(kinds) + 1)}%, down: 50ms}}" for i, kind in enumerate(kinds)]
    return PLAN.format(broker=broker.name, faults=", ".join(faults))


@pytest.mark.parametrize("broker", SERVERS, ids=lambda broker: broker.name)
def test_it_keeps_what_it_claims(tmp_path: Path, own_mounts: None, broker: Broker) -> None:
    had(broker)
    (trial,) = resolve.trials(parse(plan(broker), "tiny.yaml"), "small", ())
    end = Conductor(trial, tmp_path / "trial", "00000000000000aa", 7, Silent()).run()
    if broker.name == "rabbitmq" and end.problems:
        # A restart may leave quorum queues of RabbitMQ 3.10 without a leader. Such a trial is unknown: it says nothing.
        shutil.rmtree(tmp_path / "trial")
        end = Conductor(trial, tmp_path / "trial", "00000000000000aa", 7, Silent()).run()
    assert end.problems == () and end.drained
    result = judge_trial(str(tmp_path / "trial"), Inline())
    assert result["verdict"] == "held", [check for check in result["checks"] if check["verdict"] != "held"]
    assert result["account"]["sent"] == 3_000 and result["account"]["acked"] > 1_000

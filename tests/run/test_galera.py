"""A trial on a real cluster of three: one node is killed while others go on, then all of them are cut off at once."""

import json
from pathlib import Path

import pytest

from ackworth.broker.brook_mariadb import BROKER, GALERA
from ackworth.model.outcome import Outcome
from ackworth.pipeline.trial import judge_trial
from ackworth.plan import resolve
from ackworth.plan.tree import parse
from ackworth.run.conductor import Conductor
from ackworth.testing.engine import Inline
from tests.conftest import had
from tests.run.test_conductor import Silent, Told

pytestmark = pytest.mark.real

PLAN = """
name: tiny
title: a tiny plan on a cluster
broker: {kind: brook-mariadb, topology: galera}
workload:
  topics: 4
  producers: 3
  consumers: 3
  window: 200
  batch: 50
  drain: {quiet: 500ms}
  phases: [{name: send, messages: 8_000, rate: 2_000}]
faults:
  - {kind: kill, node: random, at: 20%, down: 50ms}
  - {kind: power-cut, at: 70%, down: 50ms}
expect: {lost: none}
"""


def test_a_node_is_killed_and_then_all_are_cut_off(tmp_path: Path, own_mounts: None) -> None:
    had(BROKER, GALERA)
    (trial,) = resolve.trials(parse(PLAN, "tiny.yaml"), "small")
    directory = tmp_path / "trial"
    told = Told(directory, Conductor(trial, directory, "00000000000000aa", 7, Silent()).run())
    result = judge_trial(str(directory), Inline())
    assert result["verdict"] == "held", result["sentence"]
    assert told.marks("fault") == ["kill", "power-cut", "power-cut", "power-cut"]
    whole = [json.loads(row["detail"])["whole"] for row in told.rows("mark") if row["what"] == "fault"]
    assert whole == [False, True, True, True]
    (kill,) = [row for row in told.rows("mark") if (row["what"], row["name"]) == ("fault", "kill")]
    (ready,) = [row for row in told.rows("mark") if (row["what"], row["name"]) == ("ready", "kill")]
    acked = [row["t"] for row in told.rows("outcome") if row["outcome"] == Outcome.ACKED]
    assert any(kill["t_end"] < t < ready["t_end"] for t in acked), "the others did not go on without it"
    log = (directory / "logs" / f"{kill['node']}.log").read_text(errors="replace")
    assert "Receiving IST" in log, "it got everything, not what it missed"

"""The plans of the queue inside a database, at their small size, on Brook: each holds, and does what it says."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ackworth.broker.brook_mariadb import BROKER as BROOK_MARIADB
from ackworth.model.outcome import Delivery
from ackworth.model.result import TrialResult
from ackworth.pipeline.trial import judge_trial
from ackworth.plan import resolve
from ackworth.run.conductor import Conductor
from ackworth.testing.engine import Inline
from tests.conftest import had
from tests.run.test_conductor import Silent, Told

pytestmark = pytest.mark.real

Run = Callable[..., tuple[Told, TrialResult]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def conduct(plan: str, name: str = "trial", *sets: str) -> tuple[Told, TrialResult]:
        trials = resolve.trials(resolve.find(plan), "small", ["workload.drain.quiet=500ms", *sets])
        (trial,) = [trial for trial in trials if trial.name == name]
        directory = tmp_path / name
        told = Told(directory, Conductor(trial, directory, "00000000000000aa", 7, Silent()).run())
        return told, judge_trial(str(directory), Inline())

    return conduct


def held(result: TrialResult) -> dict[str, Any]:
    """The checks by name, once all of them hold."""
    assert result["verdict"] == "held", result["sentence"]
    return {check["name"]: check for check in result["checks"]}


def delivered(result: TrialResult) -> list[int]:
    return [group["distinct"] for group in result["groups"]]


def test_consistency(run: Run) -> None:
    told, result = run("consistency", "undisturbed")
    held(result)
    assert result["account"]["acked"] == 15_000
    assert delivered(result) == [10_000, 5_000, 5_000]
    assert Counter(row["topic"] for row in told.rows("sent")) == {0: 10_000, 1: 5_000}
    assert {(row["producer"], row["topic"]) for row in told.rows("sent")} == {(0, 0), (1, 0), (1, 1)}
    assert {(row["group"], row["topic"]) for row in told.rows("delivered")} == {(0, 0), (1, 1), (2, 1)}


def test_consistency_with_consumers_killed(run: Run) -> None:
    told, result = run("consistency", "consumers-killed")
    held(result)
    assert delivered(result) == [20_000, 10_000, 10_000]
    struck = [row["node"] for row in told.rows("mark") if row["what"] == "fault"]
    assert len(struck) == 2 and set(struck) <= {"consumers-0", "consumers-1", "consumers-2"}
    assert told.marks("worker-died") == struck, "others died, or those that were struck did not"


def test_truncation(run: Run) -> None:
    told, result = run("truncation", "trial", "faults.0.times=1")  # a second may come when all has been sent
    held(result)
    (emptied,) = [row["t_end"] for row in told.rows("mark") if (row["what"], row["name"]) == ("fault", "truncate")]
    later = {(row["producer"], row["seq"]) for row in told.rows("sent") if row["t"] > emptied}
    assert later, "nothing was sent after the table was emptied"
    for group in range(2):
        assert later <= set(told.ids("delivered", group=group))


def test_retries(run: Run) -> None:
    told, result = run("retries", "trial", "workload.drain.quiet=3s")  # a retry that comes late is no end
    assert held(result)["attempts"]["reason"] == "400 refused messages, each delivered 17 times"
    times = Counter((row["group"], row["producer"], row["seq"]) for row in told.rows("delivered"))
    assert {times[which] for which in times if which[2] % 100 == 0} == {17}
    assert {times[which] for which in times if which[2] % 100} == {1}
    assert {bool(row["flags"] & Delivery.REFUSED) for row in told.rows("delivered") if row["seq"] % 100} == {False}


def test_retries_that_do_not_come_as_often(run: Run) -> None:
    _, result = run("retries", "trial", "expect.attempts=16", "workload.phases.0.messages=2_000")
    broken = {check["name"]: check["found"] for check in result["checks"] if check["verdict"] == "broken"}
    assert broken == {"attempts": 40}


def test_broadcast(run: Run) -> None:
    told, result = run("broadcast")
    held(result)
    assert delivered(result) == [60_000] * 3
    assert set(told.ids("delivered", group=1).values()) == {1}


@pytest.mark.parametrize("name", ["1-KB", "10-KB", "100-KB"])
def test_body_sizes(run: Run, name: str) -> None:
    _, result = run("body-sizes", name, "workload.phases.0.messages=500")
    held(result)
    assert delivered(result) == [500]


def test_the_largest_bodies(run: Run) -> None:
    _, result = run("body-sizes", "1000-KB")
    held(result)
    assert delivered(result) == [60]
    assert result["throughput"]["acked_per_second"] and result["throughput"]["delivered_per_second"]


def test_truncation_of_a_server(run: Run, own_mounts: None) -> None:
    had(BROOK_MARIADB)
    slower = ("workload.phases.0.rate=5_000", "workload.phases.0.messages=20_000")
    told, result = run("truncation", "trial", "broker.kind=brook-mariadb", *slower)
    held(result)
    assert told.marks("fault") == ["truncate", "truncate"]


@pytest.mark.parametrize("name", ["lost", "hanging", "out"])
def test_redis_lost(run: Run, own_mounts: None, name: str) -> None:
    had(BROOK_MARIADB, "with-redis")
    told, result = run("redis-lost", name)
    held(result)
    assert result["account"]["acked"] == 20_000, "not all sends went on"
    assert delivered(result) == [20_000, 20_000]
    assert {row["node"] for row in told.rows("mark") if row["what"] == "fault"} == {"redis"}

"""Which side was the limit: found where it was planted, and said in words."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ackworth.model.clock import SECOND
from ackworth.model.outcome import Outcome
from ackworth.model.result import Limit
from ackworth.pipeline.trial import judge_trial
from ackworth.testing.engine import Inline
from ackworth.testing.histories import Answer, Delivered, History, Mark, Sample, Sent, trial, write_history

LOAD = Mark("phase", "send", 0, 6 * SECOND)
DRAIN = Mark("phase", "drain", 6 * SECOND, 10 * SECOND)
IDLE = {"worker:producers-0": 0.3, "worker:consumers-0": 0.1, "node:a": 0.5, "disk:sda": 0.2, "host": 1.0}


def samples(use: dict[str, float], seconds: Iterable[int] = range(11)) -> list[Sample]:
    """Counters that grow by so much a second."""
    found = []
    for who, part in use.items():
        counter = "busy" if who.startswith("disk") else "cpu"
        found += [Sample(who, t * SECOND, **{counter: int(part * t * SECOND)}) for t in seconds]
    return found


def limit(tmp_path: Path, sampled: list[Sample], marks: Iterable[Mark] = (), **changes: Any) -> Limit:
    made = replace(trial(plan=changes.pop("plan", None)), cores=2, **changes)
    history = History(
        trial=made,
        sent=[Sent(0, 0, 1)],
        outcome=[Answer(0, 0, Outcome.ACKED, 2, 1)],
        delivered=[Delivered(0, 0, 3)],
        mark=sorted([LOAD, DRAIN, *marks], key=lambda mark: mark.t_begin),
        sample=sorted(sampled, key=lambda sample: sample.t),
    )
    return judge_trial(write_history(tmp_path, history), Inline())["limit"]


@pytest.mark.parametrize(
    ("planted", "side", "said"),
    [
        (
            {"worker:producers-0": 0.97, "disk:sda": 0.99},
            "generator",
            "The generator was the limit, and not the broker",
        ),
        ({"disk:sda": 0.95, "node:a": 1.0}, "disk", "The disk was the limit"),
        ({"node:a": 0.98, "host": 1.9}, "broker", "The broker was the limit"),
        (
            {"host": 1.9},
            "machine",
            "The machine was the limit: all its cores were busy; 1.0 cores went to what is no part of the run",
        ),
        ({}, "none", "Nothing was busy all the time: the load waited for answers"),
    ],
)
def test_the_side_that_was_planted_is_found(tmp_path: Path, planted: dict[str, float], side: str, said: str) -> None:
    found = limit(tmp_path, samples({**IDLE, **planted}))
    assert found["side"] == side
    assert found["said"].startswith(said)


def test_the_figures_are_those_of_the_samples(tmp_path: Path) -> None:
    found = limit(tmp_path, samples(IDLE))
    assert {name: round(value, 2) for name, value in found.items() if isinstance(value, float)} == {
        "generator": 0.3,
        "broker": 0.5,
        "disk": 0.2,
        "machine": 1.0,
        "others": 0.1,
    }
    assert found["said"].endswith(
        "(busiest producer 0.30 of a core, broker 0.50 cores, disk busy 20%, machine 1.00 of 2 cores)."
    )


def test_a_rate_that_the_plan_set_is_the_limit(tmp_path: Path) -> None:
    plan = {"workload": {"phases": [{"name": "send", "rate": 100.0}]}}
    assert limit(tmp_path, samples(IDLE), plan=plan)["said"].startswith(
        "Nothing was at its limit: the plan set the rate"
    )


def test_where_load_and_broker_are_one_process_it_says_so(tmp_path: Path) -> None:
    busy = samples({**IDLE, "worker:producers-0": 1.0})
    assert "in which load and broker run together" in limit(tmp_path, busy, broker={"embedded": True})["said"]


def test_what_is_used_in_the_drain_and_during_a_fault_does_not_count(tmp_path: Path) -> None:
    """Busy from second 2 to 4, when a fault is under way, and from 6 on, when the load is over."""
    calm = [0.3, 0.3, 1.0, 1.0, 0.3, 0.3, 1.0, 1.0, 1.0, 1.0]
    used = [Sample("worker:producers-0", t * SECOND, cpu=int(sum(calm[:t]) * SECOND)) for t in range(11)]
    rest = samples({who: part for who, part in IDLE.items() if "producers" not in who})
    faults = [
        Mark("fault", "kill", 2 * SECOND, 2 * SECOND + 1, node="a"),
        Mark("ready", "kill", 4 * SECOND, 4 * SECOND, node="a"),
    ]
    assert limit(tmp_path / "with", used + rest, faults)["generator"] == pytest.approx(0.3)
    assert limit(tmp_path / "without", used + rest)["generator"] == pytest.approx(0.3 * 4 / 6 + 2 / 6)


def test_what_is_used_in_a_warm_up_does_not_count(tmp_path: Path) -> None:
    used = [
        Sample("worker:producers-0", t * SECOND, cpu=int((min(t, 2) + 0.3 * max(0, t - 2)) * SECOND)) for t in range(11)
    ]
    rest = samples({who: part for who, part in IDLE.items() if "producers" not in who})
    phases = [
        Mark("phase", "warm-up", 0, 2 * SECOND, detail='{"warm_up": true}'),
        Mark("phase", "send", 2 * SECOND, 6 * SECOND),
    ]
    assert limit(tmp_path, used + rest, phases)["generator"] == pytest.approx(0.3)


def test_without_samples_of_the_load_it_cannot_be_told(tmp_path: Path) -> None:
    found = limit(tmp_path, samples(IDLE, seconds=range(7, 11)))
    assert (found["side"], found["generator"]) == ("unknown", None)
    assert found["said"].startswith("Which side was the limit cannot be told")

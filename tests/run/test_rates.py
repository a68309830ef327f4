"""A rate that is a part of what an earlier trial reached comes from that trial's record, or not at all."""

from pathlib import Path

import pytest

from ackworth.model.clock import SECOND
from ackworth.model.errors import Unavailable
from ackworth.model.outcome import Outcome
from ackworth.plan import resolve
from ackworth.plan.resolve import TrialPlan
from ackworth.plan.tree import parse
from ackworth.run import rates
from ackworth.testing.histories import Answer, History, Mark, Sent, trial, write_history

PLAN = """\
name: tiny
title: a tiny plan
workload: {phases: [{name: send, duration: 1s}]}
cases:
  full: {repeats: 2}
  half: {workload: {phases: [{name: send, duration: 1s, rate: 50% of full}]}}
"""


@pytest.fixture
def plans() -> list[TrialPlan]:
    return resolve.trials(parse(PLAN, "tiny.yaml"), "small")


def record(folder: Path, *, acked: int, outcome: Outcome = Outcome.ACKED) -> None:
    """So many in a second, and as many that are refused."""
    times = [n * SECOND // acked for n in range(1, acked + 1)]
    answers = [Answer(0, n, outcome, t) for n, t in enumerate(times)]
    refusals = [Answer(1, n, Outcome.REFUSED, t) for n, t in enumerate(times)]
    write_history(folder, History(trial=trial(producers=2), sent=[Sent(0, 0, 0)], outcome=answers + refusals))


def test_acks_are_counted_and_refusals_are_not(tmp_path: Path) -> None:
    record(tmp_path, acked=500)
    assert rates.acked_per_second(tmp_path) == 500.0


def test_a_warm_up_is_not_counted(tmp_path: Path) -> None:
    """A fast second that only warms up, and a slow one."""
    sent = [Sent(0, n, n * SECOND // 100) for n in range(100)] + [
        Sent(0, 100 + n, SECOND + n * SECOND // 10) for n in range(10)
    ]
    answers = [Answer(0, row.seq, Outcome.ACKED, row.t + SECOND // 10, SECOND // 10) for row in sent]
    warm_up = Mark("phase", "warm-up", 0, SECOND, detail='{"warm_up": true}')
    write_history(tmp_path, History(trial=trial(), sent=sent, outcome=answers, mark=[warm_up]))
    assert rates.acked_per_second(tmp_path) == 10.0


def test_it_is_the_mean_of_the_repeats(tmp_path: Path, plans: list[TrialPlan]) -> None:
    record(tmp_path / "full-1", acked=300)
    record(tmp_path / "full-2", acked=500)
    half = rates.settled(plans[-1], plans, tmp_path)
    assert half.plan.workload.phases[0].rate == 200.0
    assert rates.settled(plans[0], plans, tmp_path) == plans[0]


def test_a_trial_without_acks_gives_no_rate(tmp_path: Path, plans: list[TrialPlan]) -> None:
    record(tmp_path / "full-1", acked=300, outcome=Outcome.UNKNOWN)
    with pytest.raises(Unavailable, match="'full' acked nothing that a rate could be taken from"):
        rates.settled(plans[-1], plans, tmp_path)

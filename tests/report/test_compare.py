"""Runs side by side: what is worse by more than noise is found, and nothing else is."""

import copy
from typing import Any

import pytest

from ackworth.model.errors import BadInput
from ackworth.model.result import RunResult, TrialResult
from ackworth.model.verdict import Verdict
from ackworth.report.compare import Compared, Line, compare
from ackworth.report.compare_table import plain, render
from ackworth.report.difference import Difference, differences
from ackworth.report.terminal import Style
from ackworth.testing.results import broken_trial, held_trial, sample_run, unknown_trial

TENTH = 0.1


def trial(made: TrialResult, *, fast: float | None = 1000.0, repeat: int = 1, cell: str = "full") -> TrialResult:
    """As fast as it goes, with a fault; so many acked a second."""
    plan = {"faults": [{"kind": "power-cut"}], "workload": {"phases": [{"name": "send", "rate": None}]}}
    return {**made, "case": "a", "cell": cell, "repeat": repeat, "plan": plan, "throughput": {"acked_per_second": fast}}


def run(*speeds: float | None, cell: str = "full", **changes: Any) -> RunResult:
    repeats = [trial(held_trial(), fast=fast, repeat=n, cell=cell) for n, fast in enumerate(speeds, 1)]
    return {**sample_run(*repeats), **changes}  # type: ignore[typeddict-item]


def speed(compared: Compared) -> Line:
    return next(line for line in compared.lines if line.measure and line.measure.name == "acked a second")


def test_a_run_is_no_worse_than_itself() -> None:
    compared = compare([run(1000, 1010), run(1000, 1010)], TENTH)
    assert compared.verdict == Verdict.HELD
    assert compared.changed[1] == ()


@pytest.mark.parametrize(
    ("before", "after", "beyond", "verdict"),
    [
        ((1000, 1010, 990), (800, 810, 790), True, "broken"),
        ((1000, 1010, 990), (950, 960, 955), True, "held"),  # beyond the noise, within the threshold
        ((1000, 700, 1300), (800, 790, 780), False, "held"),  # below the threshold, within the noise
        ((1000, 1010, 990), (1300, 1310, 1290), True, "held"),  # better
        ((1000,), (800,), None, "broken"),  # a single repeat: the threshold decides alone
        ((1000, 1010), (800, None), None, "unknown"),
        ((None, None), (800, 810), None, "held"),
    ],
)
def test_worse_than_the_threshold_and_more_than_noise(
    before: tuple[float | None, ...], after: tuple[float | None, ...], beyond: bool | None, verdict: str
) -> None:
    line = speed(compare([run(*before), run(*after)], TENTH))
    assert line.changes[1] is not None and line.changes[1].beyond_noise is beyond
    assert line.verdict == verdict


def test_the_threshold_is_the_users() -> None:
    pair = [run(1000, 1010), run(800, 810)]
    assert compare(pair, 0.5).verdict == Verdict.HELD
    assert compare(pair, 0.0).verdict == Verdict.BROKEN


def test_a_verdict_that_was_held_and_is_broken_is_a_regression_and_a_loss_too() -> None:
    broken = sample_run(trial(broken_trial()))
    compared = compare([run(1000), broken], TENTH)
    worse = [line.measure.name if line.measure else "verdict" for line in compared.lines if line.verdict == "broken"]
    assert worse == ["verdict", "lost of acked"]
    assert compare([broken, broken], TENTH).verdict == Verdict.HELD  # no news
    assert compare([broken, run(1000)], TENTH).verdict == Verdict.HELD


def test_what_is_not_known_any_more_does_not_pass() -> None:
    assert compare([run(1000), sample_run(trial(unknown_trial()))], TENTH).verdict == Verdict.UNKNOWN


def test_what_is_broken_and_was_not_known_before_does_not_pass_either() -> None:
    before, after = sample_run(trial(unknown_trial())), sample_run(trial(broken_trial()))
    assert compare([before, after], TENTH).lines[0].verdict == Verdict.UNKNOWN


def test_late_is_compared_where_a_rate_holds_the_load_back() -> None:
    def paced(p99: float) -> RunResult:
        made = copy.deepcopy(trial(held_trial()))
        made["plan"] = {"faults": [], "workload": {"phases": [{"name": "send", "rate": 500.0}]}}
        made["latency"]["due_to_ack"] = {**made["latency"]["sent_to_ack"], "p99": p99}
        return sample_run(made)

    compared = compare([paced(1e6), paced(2e6)], TENTH)
    assert [(line.measure.name, line.verdict) for line in compared.lines if line.measure] == [
        ("ack p50", "held"),
        ("ack p99", "broken"),
        ("delivery p99", "held"),
        ("lost of acked", "held"),
    ]


def test_two_brokers_are_put_together_by_case() -> None:
    compared = compare([run(1000, cell="pail"), run(1000, cell="tub")], TENTH)
    assert {line.trial for line in compared.lines} == {"a"} and compared.unmatched == ()


def test_several_cells_that_do_not_meet_cannot_be_compared() -> None:
    several = sample_run(trial(held_trial(), cell="pail"), trial(held_trial(), cell="pot"))
    with pytest.raises(BadInput, match="no trial in common"):
        compare([several, run(1000, cell="tub")], TENTH)


def test_what_only_one_has_is_told() -> None:
    more = sample_run(trial(held_trial()), trial(held_trial(), cell="off"))
    compared = compare([run(1000), more], TENTH)
    assert (compared.unmatched, compared.gone, compared.verdict) == (("a off",), (), "held")


def test_what_the_first_has_alone_is_not_known_any_more() -> None:
    more = sample_run(trial(held_trial()), trial(held_trial(), cell="off"))
    compared = compare([more, run(1000)], TENTH)
    assert (compared.unmatched, compared.gone, compared.verdict) == (("a off",), ("a off",), "unknown")
    assert "could not be told: 1 could not be told of 5" in render(compared, ["before", "after"], Style())


def test_another_plan_is_refused() -> None:
    with pytest.raises(BadInput, match=r"runs of different plans \(reboot, price\)"):
        compare([run(1000), run(1000, plan="price")], TENTH)


def test_what_differs_is_told_once() -> None:
    other = run(1000, 1000, seed=8, environment={**run(1000)["environment"], "cores": 64})
    for made in other["trials"]:
        made["broker"] = {**made["broker"], "version": "SQLite 3.50.0"}
    changed = compare([run(1000, 1000), other], TENTH).changed[1]
    assert changed[0] == "seed: 7 → 8" and changed[2:] == ("broker.version: SQLite 3.40.1 → SQLite 3.50.0",)
    assert changed[1].startswith("environment.cores: ") and changed[1].endswith(" → 64")


def test_differences() -> None:
    before, after = {"a": 1, "b": {"c": [1, 2]}, "d": {}}, {"a": 1, "b": {"c": [1, 3]}, "e": None}
    assert differences(before, after) == [
        Difference("b.c.1", "2", "3"),
        Difference("d", "{}", "not there"),
        Difference("e", "not there", "None"),
    ]
    assert differences(before, before) == []


def test_three_runs_in_a_table() -> None:
    compared = compare([run(1000, 1010), run(800, 810), run(1000, 1400)], TENTH)
    said = render(compared, ["one", "two", "three"], Style(width=200))
    assert "800/s to 810/s, 20% worse, more than noise" in said
    assert "1,000/s to 1,400/s, 19% better, within noise" in said
    assert said.endswith("✗ regression: 1 worse of 4\n")
    data = plain(compared, ["one", "two", "three"])
    assert data["verdict"] == "broken" and data["changed"] == {"two": [], "three": []}
    worse = next(line["worse"] for line in data["lines"] if line["measure"] == "acked a second")
    assert worse == pytest.approx([200 / 1005, -195 / 1005])

"""The rules of the verdict: claims, expectations, incomplete runs, failing measurements."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ackworth.history.meta import End
from ackworth.model.outcome import Outcome
from ackworth.model.result import CheckResult, TrialResult
from ackworth.pipeline import judge
from ackworth.pipeline.measure.latency import Latencies
from ackworth.pipeline.measure.order import Order
from ackworth.pipeline.trial import judge_trial
from ackworth.testing.engine import Inline
from ackworth.testing.histories import Answer, Delivered, History, Mark, Sent, trial, write_history

SECOND = 10**9
ACKED = Outcome.ACKED
KILL = Mark("fault", "kill", 2 * SECOND, 2 * SECOND)
CUT = Mark("fault", "power-cut", 2 * SECOND, 2 * SECOND)
LATE_CUT = Mark("fault", "power-cut", 4 * SECOND, 4 * SECOND)


def history(*, lost: bool = False, doubled: bool = False, late: bool = False, **trial_changes: Any) -> History:
    """Three messages, one before and two after two seconds."""
    order = [0, 2, 1] if late else [0, 1, 2]
    order += [2] if doubled else []
    delivered = [Delivered(0, seq, 5 * SECOND + n) for n, seq in enumerate(order) if not (lost and seq == 1)]
    times = (SECOND, 3 * SECOND, 4 * SECOND)
    return History(
        trial=trial(**trial_changes),
        sent=[Sent(0, seq, t) for seq, t in enumerate(times)],
        outcome=[Answer(0, seq, ACKED, t + SECOND // 2, SECOND // 2) for seq, t in enumerate(times)],
        delivered=delivered,
    )


def judged(tmp_path: Path, history: History) -> TrialResult:
    return judge_trial(write_history(tmp_path, history), Inline())


def check(result: TrialResult, name: str) -> CheckResult:
    return next(check for check in result["checks"] if check["name"] == name)


def said(result: TrialResult, name: str) -> tuple[str, str]:
    return check(result, name)["verdict"], check(result, name)["reason"]


def test_a_loss_after_a_fault_that_is_survived_is_broken(tmp_path: Path) -> None:
    result = judged(tmp_path, replace(history(lost=True), mark=[KILL]))
    assert said(result, "lost") == ("broken", "1 lost message")
    assert result["sentence"] == "Broken: 1 of 3 acked messages was lost after 1 kill."


def test_a_loss_is_broken_if_the_nodes_that_were_spared_should_have_kept_it(tmp_path: Path) -> None:
    spared = replace(CUT, detail='{"of": "node", "whole": false}')
    found = replace(history(lost=True, survives_in_part=["power-cut"]), mark=[spared])
    assert said(judged(tmp_path / "part", found), "lost") == ("broken", "1 lost message")
    assert said(judged(tmp_path / "whole", replace(found, mark=[LATE_CUT])), "lost")[0] == "held"


def test_a_loss_before_a_fault_that_is_not_claimed_is_told(tmp_path: Path) -> None:
    result = judged(tmp_path, replace(history(lost=True), mark=[KILL, LATE_CUT]))
    assert said(result, "lost") == ("held", "1 lost message, and the broker does not claim to survive power-cut")
    assert check(result, "lost")["ids"] == ["0/1"]
    assert result["sentence"] == (
        "Held: 1 of 3 acked messages was lost, which was allowed, after 1 kill and 1 power cut; nothing doubled."
    )


@pytest.mark.parametrize(("ready", "verdict"), [(3 * SECOND - 1, "broken"), (3 * SECOND, "held")])
def test_a_fault_excuses_only_what_was_sent_before_it_was_over(tmp_path: Path, ready: int, verdict: str) -> None:
    """0/1, sent at 3 s, is lost."""
    marks = [CUT, Mark("ready", "power-cut", 2 * SECOND, ready)]
    assert said(judged(tmp_path, replace(history(lost=True), mark=marks)), "lost")[0] == verdict


@pytest.mark.parametrize(("fault", "verdict"), [(KILL, "broken"), (CUT, "held")])
def test_a_refusal_to_start_is_held_against_the_claim(tmp_path: Path, fault: Mark, verdict: str) -> None:
    refused = Mark("refused", fault.name, 3 * SECOND, 3 * SECOND, detail='{"reason": "bad file"}')
    repaired = Mark("repaired", fault.name, 3 * SECOND, 3 * SECOND, detail='{"said": "fixed"}')
    result = judged(tmp_path, replace(history(), mark=[fault, refused, repaired]))
    assert said(result, "started")[0] == verdict
    assert f"refused to start after {fault.name}: bad file" in said(result, "started")[1]
    assert (result["faults"][0]["refused"], result["faults"][0]["repaired"]) == ("bad file", "fixed")


@pytest.mark.parametrize("expect", [{}, {"lost": "any"}, {"lost": "before-fault"}])
def test_a_refusal_to_start_is_not_excused_by_another_fault(tmp_path: Path, expect: dict[str, str]) -> None:
    """After the cut, which is not claimed, it may refuse; after the kill it may not."""
    marks = [
        CUT,
        Mark("refused", "power-cut", 2 * SECOND + 1, 2 * SECOND + 1, detail='{"reason": "torn"}'),
        replace(KILL, t_begin=3 * SECOND, t_end=3 * SECOND),
        Mark("refused", "kill", 3 * SECOND + 1, 3 * SECOND + 1, detail='{"reason": "bad file"}'),
    ]
    verdict, reason = said(judged(tmp_path, replace(history(plan={"expect": expect}), mark=marks)), "started")
    assert (verdict, reason) == ("broken", " refused to start after kill: bad file")


@pytest.mark.parametrize(("consumers", "verdict"), [(1, "broken"), (2, "held")])
def test_order_may_be_promised_only_to_a_lone_consumer(tmp_path: Path, consumers: int, verdict: str) -> None:
    result = judged(tmp_path, history(late=True, ordered_alone=True, consumers=consumers))
    assert said(result, "reordered")[0] == verdict
    assert ("does not claim to deliver in order to one of several" in said(result, "reordered")[1]) == (consumers == 2)


def test_order_is_promised_to_a_lone_consumer_also_where_others_share(tmp_path: Path) -> None:
    """The second group has one consumer, and what it got is out of order; the first shares."""
    groups = [("shared", [1]), ("alone", [0])]
    plan = {"workload": {"clients": [[0], [0], [1]]}}
    found = history(late=True, ordered_alone=True, consumers=3, topics=2, groups=groups, plan=plan)
    theirs = [replace(row, group=1, consumer=2) for row in found.delivered]
    assert said(judged(tmp_path, replace(found, delivered=theirs)), "reordered")[0] == "broken"


def test_a_broker_that_starts_is_not_asked_whether_it_did(tmp_path: Path) -> None:
    result = judged(tmp_path, replace(history(), mark=[KILL]))
    assert "started" not in [found["name"] for found in result["checks"]]
    assert (result["faults"][0]["refused"], result["faults"][0]["repaired"]) == (None, None)


@pytest.mark.parametrize(("expected", "verdict"), [("none", "broken"), ("claimed", "held"), ("any", "held")])
def test_what_the_plan_says_of_losses(tmp_path: Path, expected: str, verdict: str) -> None:
    lossy = history(lost=True, plan={"expect": {"lost": expected}})
    assert check(judged(tmp_path, replace(lossy, mark=[LATE_CUT])), "lost")["verdict"] == verdict


@pytest.mark.parametrize(("expected", "verdict"), [("none", "broken"), ("claimed", "held"), ("any", "held")])
@pytest.mark.parametrize("what", ["duplicates", "reordered"])
def test_what_the_plan_says_of_what_is_not_claimed(tmp_path: Path, what: str, expected: str, verdict: str) -> None:
    plan = {"expect": {what: expected}}
    wrong = {"duplicates": {"doubled": True}, "reordered": {"late": True}}[what]
    result = judged(tmp_path, history(**wrong, ordered=False, once=False, plan=plan))
    assert check(result, what)["verdict"] == verdict
    assert check(result, what)["found"] == 1
    assert check(result, what)["ids"] == [{"duplicates": "0/2", "reordered": "0/1"}[what]]


def test_an_incomplete_drain(tmp_path: Path) -> None:
    undrained = replace(history(), end=End(t=1, drained=False))
    result = judged(tmp_path, undrained)
    assert result["verdict"] == "unknown"
    assert said(result, "lost") == ("held", "no lost message"), "all that was acked was seen"
    assert said(result, "duplicates") == (
        "unknown",
        "no unexplained duplicate so far, but the groups were not drained",
    )
    assert result["sentence"] == "Unknown: the groups were not drained."


def test_a_loss_before_the_drain_is_complete_is_unknown(tmp_path: Path) -> None:
    result = judged(tmp_path, replace(history(lost=True), end=End(t=1, drained=False)))
    assert said(result, "lost") == ("unknown", "1 lost message so far, but the groups were not drained")


def test_what_was_seen_stands_without_a_drain(tmp_path: Path) -> None:
    result = judged(tmp_path, replace(history(doubled=True), end=End(t=1, drained=False)))
    assert said(result, "duplicates") == ("broken", "1 unexplained duplicate")
    assert result["verdict"] == "broken"


def test_a_killed_run(tmp_path: Path) -> None:
    result = judged(tmp_path, replace(history(), end=None))
    assert said(result, "complete") == ("unknown", "the run was killed before its end")


def test_a_problem_of_the_run_makes_everything_unknown_that_it_may_have_caused(tmp_path: Path) -> None:
    troubled = replace(history(lost=True, doubled=True), end=End(t=1, drained=True, problems=("the disk was full",)))
    result = judged(tmp_path, troubled)
    assert result["verdict"] == "unknown"
    assert said(result, "lost") == ("unknown", "1 lost message so far, but the run was not complete")
    assert said(result, "complete") == ("unknown", "the disk was full")
    assert result["sentence"] == "Unknown: the disk was full."
    assert {c["verdict"] for c in result["checks"]} == {"unknown"}


def test_what_no_problem_can_cause_stands_in_spite_of_it(tmp_path: Path) -> None:
    sound = history()
    invented = [*sound.delivered, Delivered(0, 99, 6 * SECOND)]
    troubled = replace(sound, delivered=invented, end=End(t=1, drained=True, problems=("the disk was full",)))
    result = judged(tmp_path, troubled)
    assert said(result, "phantom") == ("broken", "1 phantom")
    assert result["verdict"] == "broken"


def test_a_planned_fault_that_did_not_happen(tmp_path: Path) -> None:
    planned = history(plan={"faults": [{"kind": "kill"}, {"kind": "power-cut"}]})
    result = judged(tmp_path, replace(planned, mark=[KILL]))
    assert said(result, "complete") == ("unknown", "the planned power-cut did not happen")
    assert result["verdict"] == "unknown"


@pytest.mark.parametrize(
    ("phase", "resume", "verdict"),
    [
        ({"messages": 3, "duration": None}, True, "held"),
        ({"messages": 4, "duration": None}, True, "unknown"),
        ({"messages": 4, "duration": 1.0}, True, "held"),
        ({"messages": 4, "duration": None}, False, "held"),
    ],
)
def test_messages_that_were_planned_and_not_sent(
    tmp_path: Path, phase: dict[str, Any], resume: bool, verdict: str
) -> None:
    plan = {"workload": {"phases": [phase]}, "faults": [{"kind": "kill", "resume": resume}]}
    result = judged(tmp_path, replace(history(plan=plan), mark=[KILL]))
    assert said(result, "complete")[0] == verdict
    assert (said(result, "complete")[1] == "3 of 4 planned messages sent") == (verdict == "unknown")


def test_nothing_acked_is_unknown(tmp_path: Path) -> None:
    result = judged(tmp_path, replace(history(), outcome=[], delivered=[]))
    assert said(result, "complete") == ("unknown", "no message was acked")
    assert result["verdict"] == "unknown"


@pytest.mark.parametrize(
    ("asked", "verdict", "reason"),
    [
        ({"min_throughput": 0.8}, "held", "0.857 acked a second, 0.8 asked for"),
        ({"min_throughput": 100.0}, "broken", "0.857 acked a second, 100.0 asked for"),
        ({"max_ack_p99": 0.6}, "held", "0.5 s, 0.6 s allowed"),
        ({"max_ack_p99": 0.1}, "broken", "0.5 s, 0.1 s allowed"),
        ({"max_recovery": 2.0}, "held", "1.5 s, 2 s allowed"),
        ({"max_recovery": 1.0}, "broken", "1.5 s, 1 s allowed"),
    ],
)
def test_figures_that_are_asked_for(tmp_path: Path, asked: dict[str, float], verdict: str, reason: str) -> None:
    result = judged(tmp_path, replace(history(plan={"expect": asked}), mark=[KILL]))
    assert said(result, next(iter(asked))) == (verdict, reason)
    assert result["verdict"] == verdict


@pytest.mark.parametrize("end", [None, End(t=1, drained=True, problems=("a worker died",))])
@pytest.mark.parametrize("asked", [{"min_throughput": 100.0}, {"max_ack_p99": 0.1}, {"max_recovery": 1.0}])
def test_figures_of_a_run_that_was_cut_short_say_nothing(
    tmp_path: Path, asked: dict[str, float], end: End | None
) -> None:
    """What is slow may be the run's own doing, and what is not answered may only not have been heard."""
    result = judged(tmp_path, replace(history(plan={"expect": asked}), mark=[KILL], end=end))
    assert said(result, next(iter(asked)))[0] == "unknown"
    assert result["verdict"] == "unknown"


def test_figures_are_not_checked_unasked(tmp_path: Path) -> None:
    names = {c["name"] for c in judged(tmp_path, history())["checks"]}
    assert not names & {"min_throughput", "max_ack_p99", "max_recovery"}


def test_acks_that_never_came_break_a_limit(tmp_path: Path) -> None:
    slow = history(plan={"expect": {"max_ack_p99": 1.0}})
    result = judged(tmp_path, replace(slow, outcome=slow.outcome[:1]))
    assert said(result, "max_ack_p99") == ("broken", "2 of 3 never came back")


def test_a_broker_that_never_recovers(tmp_path: Path) -> None:
    dead = history(plan={"expect": {"max_recovery": 1.0}})
    result = judged(tmp_path, replace(dead, outcome=dead.outcome[:1], mark=[KILL]))
    assert said(result, "max_recovery") == ("broken", "no ack ever came after kill")


def test_recovery_is_unknown_if_nobody_tried(tmp_path: Path) -> None:
    ended = history(plan={"expect": {"max_recovery": 1.0}})
    ended = replace(ended, sent=ended.sent[:1], outcome=ended.outcome[:1], delivered=ended.delivered[:1], mark=[KILL])
    assert said(judged(tmp_path / "asked", ended), "max_recovery") == ("unknown", "nothing was sent after a fault")
    calm = history(plan=ended.trial.plan)
    assert said(judged(tmp_path / "calm", calm), "max_recovery") == ("unknown", "there was no fault to recover from")


@pytest.mark.parametrize("step", ["fold", "partials", "reduce", "conclude", "request", "__init__"])
def test_a_measurement_that_crashes_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def crash(*_: Any) -> None:
        raise ZeroDivisionError("planted")

    kept = getattr(Order, step)
    monkeypatch.setattr(Order, step, classmethod(crash) if hasattr(kept, "__self__") else crash)
    result = judged(tmp_path, history())
    for name in ("reordered", "duplicates", "phantom"):
        verdict, reason = said(result, name)
        assert verdict == "unknown"
        assert "ZeroDivisionError: planted" in reason
    assert result["groups"][0]["reordered"] is None
    assert said(result, "lost") == ("held", "no lost message"), "the others go on"
    assert result["verdict"] == "unknown"
    assert any("order" in note and "ZeroDivisionError" in note for note in result["notes"])


def test_an_expectation_without_its_measurement_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Latencies, "fold", lambda *_: 1 / 0)
    result = judged(tmp_path, history(plan={"expect": {"max_ack_p99": 9.0}}))
    assert said(result, "max_ack_p99")[0] == "unknown"


def test_a_check_that_crashes_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(judge.CHECKS, "lost", (("account",), lambda case: 1 // 0))
    result = judged(tmp_path, history())
    assert said(result, "lost")[0] == "unknown"
    assert "ZeroDivisionError" in said(result, "lost")[1]
    assert result["verdict"] == "unknown"

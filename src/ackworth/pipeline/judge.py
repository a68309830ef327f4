"""The verdict: findings held against what the broker claims and what the plan expects.

Rules that all checks follow:

1. What is found is evidence: a message that was doubled was doubled, whatever else went wrong.
2. What is not found counts for nothing unless the groups were drained: the rest might still have held it.
   Only a loss is the other way round: none lost is certain, some lost is not, before the drain is complete.
3. Where the run itself had a problem, nothing is held; and a loss, a duplicate, a reordering or a figure may be the
   run's own. Nor does a figure say anything of a run that was killed.
4. A measurement or a check that failed is unknown, with the error; never held.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ackworth.history.meta import End
from ackworth.model.result import CheckResult, TrialResult
from ackworth.model.verdict import Check, Verdict, worst
from ackworth.model.words import counted
from ackworth.pipeline.context import Context, Mark
from ackworth.pipeline.measurement import Findings
from ackworth.pipeline.sentence import sentence
from ackworth.pipeline.work import failure

NONE, CLAIMED, ANY = "none", "claimed", "any"
BEFORE_FAULT = "before-fault"


@dataclass(frozen=True)
class Case:
    """All that a check may look at."""

    context: Context
    end: End | None
    findings: Findings

    @property
    def expect(self) -> dict[str, Any]:
        found: dict[str, Any] = self.context.trial.plan.get("expect") or {}
        return found

    @property
    def incomplete(self) -> str | None:
        """Why there may be deliveries that were not seen."""
        if self.end is None:
            return "the run was killed before its end"
        if self.end.problems:
            return "the run was not complete"
        return None if self.end.drained else "the groups were not drained"

    @property
    def whole(self) -> bool:
        """Whether the load went as planned, if the drain did or not."""
        return self.end is not None and not self.end.problems

    @property
    def faults(self) -> list[Mark]:
        """Those of the broker: a consumer that dies is no excuse."""
        return [mark for mark in self.context.marked("fault") if mark.of_the_broker]

    def claimed(self, fault: Mark) -> bool:
        """Whether the broker claims that an acked message survives it."""
        return self.context.trial.claims.covers(fault.name, whole=fault.whole)

    def total(self, what: str) -> int:
        return sum(group[what] for group in self.findings.groups)  # type: ignore[literal-required]


def judge(context: Context, end: End | None, findings: Findings) -> TrialResult:
    """The findings, completed by checks, verdict and sentence."""
    case = Case(context, end, findings)
    checks = [_attempt(name, needs, check, case) for name, (needs, check) in CHECKS.items()]
    asked = [_attempt(n, needs, c, case) for n, (needs, c) in EXPECTED.items() if case.expect.get(n) is not None]
    if context.marked("refused"):
        checks.append(_attempt("started", (), _started, case))
    result = findings.result
    result["checks"] = [_plain(check) for check in (*checks, *asked)]
    result["verdict"] = worst(check.verdict for check in (*checks, *asked))
    result["notes"] += [f"measurement '{name}' failed: {why}" for name, why in findings.failed.items()]
    result["sentence"] = sentence(result)
    return result


def _attempt(name: str, needs: tuple[str, ...], check: Callable[[Case], Check], case: Case) -> Check:
    failed = [f"measurement '{n}' failed: {case.findings.failed[n]}" for n in needs if n in case.findings.failed]
    if failed:
        return Check(name=name, verdict=Verdict.UNKNOWN, found=None, rule=RULES[name], reason=failed[0])
    try:
        return check(case)
    except Exception as error:
        why = f"the check failed: {failure(error).text}"
        return Check(name=name, verdict=Verdict.UNKNOWN, found=None, rule=RULES[name], reason=why)


def _plain(check: Check) -> CheckResult:
    return {**dataclasses.asdict(check), "verdict": str(check.verdict), "ids": list(check.ids)}  # type: ignore[typeddict-item]


def _check(name: str, case: Case, found: int, verdict: Verdict, reason: str) -> Check:
    doubtful = verdict == Verdict.HELD or (verdict == Verdict.BROKEN and name not in CERTAIN)
    if doubtful and case.end and case.end.problems:
        verdict, reason = Verdict.UNKNOWN, f"{reason} so far, but {case.incomplete}"
    ids = tuple(case.findings.offenders.get(name, ())) if found else ()
    return Check(name=name, verdict=verdict, found=found, rule=RULES[name], reason=reason, ids=ids)


def _evidence(name: str, what: str, case: Case, found: int, allowed: str | None = None) -> Check:
    """A check for something that must not be seen, unless it is allowed for a reason."""
    seen = f"{counted(found, what)}" if found else f"no {what}"
    if found and allowed is None:
        return _check(name, case, found, Verdict.BROKEN, seen)
    if case.incomplete and allowed is None:
        return _check(name, case, found, Verdict.UNKNOWN, f"{seen} so far, but {case.incomplete}")
    return _check(name, case, found, Verdict.HELD, f"{seen}, {allowed}" if found else seen)


def _lost(case: Case) -> Check:
    found = case.total("lost")
    seen = counted(found, "lost message") if found else "no lost message"
    allowed = _loss_allowed(case)
    if not found or allowed:
        return _check("lost", case, found, Verdict.HELD, f"{seen}, {allowed}" if found else seen)
    if case.incomplete:
        return _check("lost", case, found, Verdict.UNKNOWN, f"{seen} so far, but {case.incomplete}")
    return _check("lost", case, found, Verdict.BROKEN, seen)


def _loss_allowed(case: Case) -> str | None:
    expected, sent = case.expect.get("lost", CLAIMED), case.findings.shared["last lost sent"]
    if expected == ANY:
        return "which the plan allows"
    if expected == BEFORE_FAULT:
        last = max((mark.t_end for mark in case.faults), default=-1)
        return "all of them sent before the last fault, which the plan allows" if sent <= last else None
    # A broker that dies may lose what it does not claim to keep, but not what was sent when it was up again.
    beyond = [mark.name for mark in case.faults if not case.claimed(mark) and sent <= case.context.over_at(mark)]
    if expected == CLAIMED and beyond:
        return f"and the broker does not claim to survive {beyond[0]}"
    return None


def _started(case: Case) -> Check:
    """A refusal to start is evidence, whatever became of the run afterwards."""
    refused = case.context.marked("refused")
    wanted = [mark for mark in refused if case.expect.get("lost") == NONE or case.claimed(_struck(case, mark))]
    told = (wanted or refused)[0]
    seen = f"{told.node} refused to start after {told.name}: {told.detail['reason']}"
    if wanted:
        return _answer("started", len(refused), Verdict.BROKEN, seen)
    excuse = f"and the broker does not claim to survive {told.name}"
    return _answer("started", len(refused), Verdict.HELD, f"{seen}, {excuse}")


def _struck(case: Case, refused: Mark) -> Mark:
    """The fault after which a node refused to start."""
    faults = case.context.marked("fault")
    before = [mark for mark in faults if mark.node == refused.node and mark.t_begin <= refused.t_begin]
    return max(before, key=lambda mark: mark.t_begin)


def _duplicates(case: Case) -> Check:
    split = [group["duplicates"] for group in case.findings.groups]
    found = sum(d["unexplained"] for d in split)
    allowed = _allowed(case, "duplicates", case.context.trial.claims.once, "once")
    check = _evidence("duplicates", "unexplained duplicate", case, found, allowed)
    others = {kind: sum(d[kind] for d in split) for kind in ("flagged", "explained")}
    words = [f"{number:,} {kind}" for kind, number in others.items() if number]
    return dataclasses.replace(check, reason=", ".join([check.reason, *words]))


def _reordered(case: Case) -> Check:
    trial = case.context.trial
    shared = trial.claims.ordered_alone and trial.consumers > len(trial.groups)
    words = "in order to one of several consumers" if shared else "in order"
    allowed = _allowed(case, "reordered", trial.claims.ordered and not shared, words)
    return _evidence("reordered", "reordered message", case, case.total("reordered"), allowed)


def _allowed(case: Case, what: str, claimed: bool, words: str) -> str | None:
    expected = case.expect.get(what, CLAIMED)
    if expected == ANY:
        return "which the plan allows"
    return f"and the broker does not claim to deliver {words}" if expected == CLAIMED and not claimed else None


def _account(case: Case) -> Check:
    """The record agrees with itself; if not, the fault is ours and nothing can be told."""
    defects = {what: number for what, number in case.findings.defects.items() if number}
    found = sum(defects.values())
    words = ", ".join(f"{what}: {number:,}" for what, number in defects.items())
    return _check("account", case, found, Verdict.UNKNOWN if found else Verdict.HELD, words or "it adds up")


def _complete(case: Case) -> Check:
    """The run did what its plan asked for."""
    reasons = list(case.end.problems) if case.end and case.end.problems else _shortcomings(case)
    verdict = Verdict.UNKNOWN if reasons else Verdict.HELD
    return Check(
        name="complete",
        verdict=verdict,
        found=len(reasons),
        rule=RULES["complete"],
        reason="; ".join(reasons) or "it was",
    )


def _shortcomings(case: Case) -> list[str]:
    """What the record itself shows to be missing."""
    reasons = [case.incomplete] if case.incomplete else []
    if not case.findings.account["acked"]:
        reasons.append("no message was acked")
    happened = {mark.name for mark in case.context.marked("fault")}
    planned = dict.fromkeys(fault["kind"] for fault in case.context.trial.plan.get("faults") or ())
    return reasons + [f"the planned {kind} did not happen" for kind in planned if kind not in happened]


def _attempts(case: Case) -> Check:
    times, refused = case.expect["attempts"], case.findings.shared["refused messages"]
    wrong = case.findings.shared["wrong attempts"]
    if not refused:
        return _answer("attempts", None, Verdict.UNKNOWN, "no message was refused")
    often = "once" if times == 1 else f"{times:,} times"
    seen = f"{wrong:,} of {counted(refused, 'refused message')} not delivered {often}"
    seen = seen if wrong else f"{counted(refused, 'refused message')}, each delivered {often}"
    if case.incomplete:
        return _check("attempts", case, wrong, Verdict.UNKNOWN, f"{seen} so far, but {case.incomplete}")
    return _check("attempts", case, wrong, Verdict.BROKEN if wrong else Verdict.HELD, seen)


def _min_throughput(case: Case) -> Check:
    found, least = case.findings.result["throughput"]["acked_per_second"], case.expect["min_throughput"]
    if found is None:
        return _answer("min_throughput", None, Verdict.UNKNOWN, "too few acks to tell")
    verdict = Verdict.HELD if found >= least else Verdict.BROKEN
    return _measured("min_throughput", case, found, verdict, f"{_rate(found)} acked a second, {_rate(least)} asked for")


def _max_ack_p99(case: Case) -> Check:
    latency, most = case.findings.result["latency"]["due_to_ack"], case.expect["max_ack_p99"]
    if not latency["count"]:
        return _answer("max_ack_p99", None, Verdict.UNKNOWN, "no message was acked")
    if latency["p99"] is None:
        never = f"{latency['censored']:,} of {latency['count'] + latency['censored']:,} never came back"
        return _measured("max_ack_p99", case, None, Verdict.BROKEN, never)
    found = latency["p99"] / 1e9
    verdict = Verdict.HELD if found <= most else Verdict.BROKEN
    return _measured("max_ack_p99", case, found, verdict, f"{found:.4g} s, {most:.4g} s allowed")


def _max_recovery(case: Case) -> Check:
    most, faults = case.expect["max_recovery"], case.findings.result["faults"]
    if not faults:
        return _answer("max_recovery", None, Verdict.UNKNOWN, "there was no fault to recover from")
    times = [fault["first_ack"] for fault in faults if fault["first_ack"] is not None]
    found = max(times, default=None)
    dead = [fault["name"] for fault in faults if fault["first_ack"] is None and fault["asked"]]
    if dead:
        return _measured("max_recovery", case, found, Verdict.BROKEN, f"no ack ever came after {dead[0]}")
    if found is not None and (found > most or len(times) == len(faults)):
        verdict = Verdict.BROKEN if found > most else Verdict.HELD
        return _measured("max_recovery", case, found, verdict, f"{found:.4g} s, {most:.4g} s allowed")
    return _answer("max_recovery", found, Verdict.UNKNOWN, "nothing was sent after a fault")


def _measured(name: str, case: Case, found: float | None, verdict: Verdict, reason: str) -> Check:
    if not case.whole:
        verdict, reason = Verdict.UNKNOWN, f"{reason} so far, but {case.incomplete}"
    return _answer(name, found, verdict, reason)


def _answer(name: str, found: float | None, verdict: Verdict, reason: str) -> Check:
    return Check(name=name, verdict=verdict, found=found, rule=RULES[name], reason=reason)


def _rate(number: float) -> str:
    return f"{number:,.1f}" if number >= 10 else f"{number:.3g}"


RULES = {
    "lost": "every acked message reaches every group that must have it",
    "resurrected": "no refused message is delivered",
    "phantom": "nothing is delivered that was not sent",
    "corrupt": "every body arrives as it was sent",
    "misdelivered": "every message comes from the topic it was sent to, to a group that reads it",
    "duplicates": "nothing is delivered twice without a reason",
    "reordered": "a producer's messages of one topic reach a consumer in the order of sending",
    "account": "every message of the record was sent once and has at most one outcome",
    "started": "a broker that claims to survive a fault starts again after it, without repair",
    "complete": "the run did all that its plan asked for, and all groups were drained",
    "attempts": "a message that is refused each time is delivered exactly as often as expected",
    "min_throughput": "acked messages a second, at least",
    "max_ack_p99": "99% of the acks come within",
    "max_recovery": "the first ack after each fault comes within",
}

# What no problem of the run can cause: once seen, it is so.
CERTAIN = ("resurrected", "phantom", "corrupt", "misdelivered")

# name -> (the measurements it needs, the check)
CHECKS: dict[str, tuple[tuple[str, ...], Callable[[Case], Check]]] = {
    "lost": (("account", "losses"), _lost),
    "resurrected": (
        ("account",),
        lambda case: _evidence("resurrected", "resurrected message", case, case.total("resurrected")),
    ),
    "phantom": (
        ("account", "corruption", "duplicates"),
        lambda case: _evidence("phantom", "phantom", case, case.total("phantom")),
    ),
    "corrupt": (
        ("corruption",),
        lambda case: _evidence("corrupt", "corrupt delivery", case, case.total("corrupt")),
    ),
    "misdelivered": (
        ("corruption",),
        lambda case: _evidence("misdelivered", "misdelivered message", case, case.total("misdelivered")),
    ),
    "duplicates": (("duplicates",), _duplicates),
    "reordered": (("duplicates",), _reordered),
    "account": (("account",), _account),
    "complete": (("account",), _complete),
}

# Checked only if the plan asks.
EXPECTED: dict[str, tuple[tuple[str, ...], Callable[[Case], Check]]] = {
    "attempts": (("attempts",), _attempts),
    "min_throughput": (("throughput",), _min_throughput),
    "max_ack_p99": (("latency",), _max_ack_p99),
    "max_recovery": (("recovery",), _max_recovery),
}

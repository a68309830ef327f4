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
from typing import Any

from ackworth.history.meta import End, Trial
from ackworth.model.result import CheckResult, TrialResult
from ackworth.model.verdict import Check, Verdict, worst
from ackworth.model.words import counted
from ackworth.pipeline.case import RULES, Case, answer, judged
from ackworth.pipeline.context import Context, Mark
from ackworth.pipeline.figures import EXPECTED
from ackworth.pipeline.measurement import Findings
from ackworth.pipeline.sentence import sentence
from ackworth.pipeline.work import failure

NONE, CLAIMED, ANY = "none", "claimed", "any"
BEFORE_FAULT = "before-fault"


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


def _evidence(name: str, what: str, case: Case, found: int, allowed: str | None = None) -> Check:
    """A check for something that must not be seen, unless it is allowed for a reason."""
    seen = f"{counted(found, what)}" if found else f"no {what}"
    if found and allowed is None:
        return judged(name, case, found, Verdict.BROKEN, seen)
    if case.incomplete and allowed is None:
        return judged(name, case, found, Verdict.UNKNOWN, f"{seen} so far, but {case.incomplete}")
    return judged(name, case, found, Verdict.HELD, f"{seen}, {allowed}" if found else seen)


def _lost(case: Case) -> Check:
    found = case.total("lost")
    seen = counted(found, "lost message") if found else "no lost message"
    allowed = _loss_allowed(case)
    if not found or allowed:
        return judged("lost", case, found, Verdict.HELD, f"{seen}, {allowed}" if found else seen)
    if case.incomplete:
        return judged("lost", case, found, Verdict.UNKNOWN, f"{seen} so far, but {case.incomplete}")
    return judged("lost", case, found, Verdict.BROKEN, seen)


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
        return answer("started", len(refused), Verdict.BROKEN, seen)
    excuse = f"and the broker does not claim to survive {told.name}"
    return answer("started", len(refused), Verdict.HELD, f"{seen}, {excuse}")


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
    claims, groups = case.context.trial.claims, zip(_sharing(case.context.trial), case.findings.groups, strict=True)
    shared = claims.ordered_alone and {some > 1 for some, group in groups if group["reordered"]} == {True}
    words = "in order to one of several consumers" if shared else "in order"
    allowed = _allowed(case, "reordered", claims.ordered and not shared, words)
    return _evidence("reordered", "reordered message", case, case.total("reordered"), allowed)


def _sharing(trial: Trial) -> list[int]:
    """How many consumers each group has: as many as the others, if the plan does not say for whom each client reads."""
    clients = (trial.plan.get("workload") or {}).get("clients")
    if clients is None:
        return [trial.consumers // len(trial.groups)] * len(trial.groups)
    readers = [group for client in clients for group in client]
    return [readers.count(group) for group in range(len(trial.groups))]


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
    return judged("account", case, found, Verdict.UNKNOWN if found else Verdict.HELD, words or "it adds up")


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
    reasons += [f"the planned {kind} did not happen" for kind in planned if kind not in happened]
    sent, wanted = case.findings.account["sent"], _planned_messages(case.context.trial.plan)
    return reasons + ([f"{sent:,} of {counted(wanted, 'planned message')} sent"] if sent < wanted else [])


def _planned_messages(plan: dict[str, Any]) -> int:
    """How many must have been sent; 0 if time or a fault may end the load before."""
    phases = (plan.get("workload") or {}).get("phases") or ()
    until_struck = any(not fault.get("resume", True) for fault in plan.get("faults") or ())
    timed = any(phase.get("messages") is None or phase.get("duration") is not None for phase in phases)
    return 0 if timed or until_struck else sum(phase["messages"] for phase in phases)


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

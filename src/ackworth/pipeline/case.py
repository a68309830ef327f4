"""What checks look at, and how they answer."""

from dataclasses import dataclass
from typing import Any

from ackworth.history.meta import End
from ackworth.model.verdict import Check, Verdict
from ackworth.pipeline.context import Context, Mark
from ackworth.pipeline.measurement import Findings

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


def judged(name: str, case: Case, found: int, verdict: Verdict, reason: str) -> Check:
    doubtful = verdict == Verdict.HELD or (verdict == Verdict.BROKEN and name not in CERTAIN)
    if doubtful and case.end and case.end.problems:
        verdict, reason = Verdict.UNKNOWN, f"{reason} so far, but {case.incomplete}"
    ids = tuple(case.findings.offenders.get(name, ())) if found else ()
    return Check(name=name, verdict=verdict, found=found, rule=RULES[name], reason=reason, ids=ids)


def answer(name: str, found: float | None, verdict: Verdict, reason: str) -> Check:
    return Check(name=name, verdict=verdict, found=found, rule=RULES[name], reason=reason)

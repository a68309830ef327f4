"""Single figures of a trial, as tables and comparisons take them: None where it could not be told."""

from ackworth.model.result import TrialResult
from ackworth.model.verdict import Verdict


def planned(trial: TrialResult) -> list[str]:
    """The kinds of faults that it was to have."""
    return [fault["kind"] for fault in trial["plan"]["faults"]]


def paced(trial: TrialResult) -> bool:
    """Whether a rate held its load back: then it shows how late, and not how fast."""
    return any(phase["rate"] is not None for phase in trial["plan"]["workload"]["phases"])


def known(trial: TrialResult) -> bool:
    """Whether what was lost could be told."""
    return any(check["name"] == "lost" and check["verdict"] != Verdict.UNKNOWN for check in trial["checks"])


def broken(trial: TrialResult) -> list[str]:
    """The names of the checks that are."""
    return [check["name"] for check in trial["checks"] if check["verdict"] == Verdict.BROKEN]


def counted(trial: TrialResult, what: str) -> int | None:
    """A figure of the groups' accounts, over all groups."""
    return sum(group[what] for group in trial["groups"]) if known(trial) else None  # type: ignore[literal-required]


def percentile(trial: TrialResult, kind: str, name: str) -> float | None:
    found: dict[str, object] = dict(trial["latency"].get(kind) or {})
    value = found.get(name)
    return value if isinstance(value, int | float) else None


def recovery(trial: TrialResult) -> float | None:
    """Seconds from a fault to the first ack after it, of the worst fault."""
    waits = [fault["first_ack"] for fault in trial["faults"]]
    return max((wait for wait in waits if wait is not None), default=None) if None not in waits else None

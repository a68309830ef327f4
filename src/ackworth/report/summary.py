"""A trial in a line: what the overview of the page and that of the terminal show."""

from ackworth.model.result import Latency, TrialResult
from ackworth.report.figures import counted
from ackworth.report.text import UNKNOWN, count, duration, rate, seconds, words

NEVER = "never"  # it had not come back when the trial ended
NOT_ASKED = "nothing sent"  # so nothing could come back
COLUMNS = ("Trial", "Verdict", "Acked", "Lost", "Acked per second", "Ack p99", "Recovery")


def figures(trial: TrialResult) -> list[str]:
    """The columns after trial and verdict."""
    return [
        count(trial["account"]["acked"]),
        count(counted(trial, "lost")),
        rate(trial["throughput"].get("acked_per_second")),
        _ack_p99(trial),
        _recovery(trial),
    ]


def rates(trial: TrialResult) -> str:
    """All rates in a line: 'acked 18,987/s, acked peak 22,252/s'; without a peak that there is not."""
    rows = [(words(key).replace(" per second", ""), number) for key, number in trial["throughput"].items()]
    return ", ".join(f"{name} {rate(number)}" for name, number in rows if number is not None or "peak" not in name)


def absent(latency: Latency) -> str:
    """What to say of a percentile that is None: it lies among those that never came back, or there were none."""
    return NEVER if latency["censored"] else "none"


def _ack_p99(trial: TrialResult) -> str:
    """From when it was due: a stall must not hide in what was not sent meanwhile."""
    latency = trial["latency"].get("due_to_ack")
    return UNKNOWN if latency is None else duration(latency["p99"], none=absent(latency))


def _recovery(trial: TrialResult) -> str:
    """Until the broker took or gave a message again, after the worst fault."""
    if not trial["faults"]:
        return "no fault"
    waits = [(_first(fault["first_ack"], fault["first_delivery"]), fault["asked"]) for fault in trial["faults"]]
    missed = [asked for wait, asked in waits if wait is None]
    if missed:
        return NEVER if any(missed) else NOT_ASKED
    return seconds(max(wait for wait, _ in waits if wait is not None))


def _first(*waits: float | None) -> float | None:
    return min((wait for wait in waits if wait is not None), default=None)

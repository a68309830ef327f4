"""Checks that a plan asks for: how often refused messages come, how fast, how late, how soon again after a fault."""

from collections.abc import Callable

from ackworth.model.verdict import Check, Verdict
from ackworth.model.words import counted
from ackworth.pipeline.case import Case, answer, judged


def _attempts(case: Case) -> Check:
    times, refused = case.expect["attempts"], case.findings.shared["refused messages"]
    wrong = case.findings.shared["wrong attempts"]
    if not refused:
        return answer("attempts", None, Verdict.UNKNOWN, "no message was refused")
    often = "once" if times == 1 else f"{times:,} times"
    seen = f"{wrong:,} of {counted(refused, 'refused message')} not delivered {often}"
    seen = seen if wrong else f"{counted(refused, 'refused message')}, each delivered {often}"
    if case.incomplete:
        return judged("attempts", case, wrong, Verdict.UNKNOWN, f"{seen} so far, but {case.incomplete}")
    return judged("attempts", case, wrong, Verdict.BROKEN if wrong else Verdict.HELD, seen)


def _min_throughput(case: Case) -> Check:
    found, least = case.findings.result["throughput"]["acked_per_second"], case.expect["min_throughput"]
    if found is None:
        return answer("min_throughput", None, Verdict.UNKNOWN, "too few acks to tell")
    verdict = Verdict.HELD if found >= least else Verdict.BROKEN
    return _measured("min_throughput", case, found, verdict, f"{_rate(found)} acked a second, {_rate(least)} asked for")


def _max_ack_p99(case: Case) -> Check:
    latency, most = case.findings.result["latency"]["due_to_ack"], case.expect["max_ack_p99"]
    if not latency["count"]:
        return answer("max_ack_p99", None, Verdict.UNKNOWN, "no message was acked")
    if latency["p99"] is None:
        never = f"{latency['censored']:,} of {latency['count'] + latency['censored']:,} never came back"
        return _measured("max_ack_p99", case, None, Verdict.BROKEN, never)
    found = latency["p99"] / 1e9
    verdict = Verdict.HELD if found <= most else Verdict.BROKEN
    return _measured("max_ack_p99", case, found, verdict, f"{found:.4g} s, {most:.4g} s allowed")


def _max_recovery(case: Case) -> Check:
    most, faults = case.expect["max_recovery"], case.findings.result["faults"]
    if not faults:
        return answer("max_recovery", None, Verdict.UNKNOWN, "there was no fault to recover from")
    times = [fault["first_ack"] for fault in faults if fault["first_ack"] is not None]
    found = max(times, default=None)
    dead = [fault["name"] for fault in faults if fault["first_ack"] is None and fault["asked"]]
    if dead:
        return _measured("max_recovery", case, found, Verdict.BROKEN, f"no ack ever came after {dead[0]}")
    if found is not None and (found > most or len(times) == len(faults)):
        verdict = Verdict.BROKEN if found > most else Verdict.HELD
        return _measured("max_recovery", case, found, verdict, f"{found:.4g} s, {most:.4g} s allowed")
    return answer("max_recovery", found, Verdict.UNKNOWN, "nothing was sent after a fault")


def _measured(name: str, case: Case, found: float | None, verdict: Verdict, reason: str) -> Check:
    if not case.whole:
        verdict, reason = Verdict.UNKNOWN, f"{reason} so far, but {case.incomplete}"
    return answer(name, found, verdict, reason)


def _rate(number: float) -> str:
    return f"{number:,.1f}" if number >= 10 else f"{number:.3g}"


# Checked only if the plan asks.
EXPECTED: dict[str, tuple[tuple[str, ...], Callable[[Case], Check]]] = {
    "attempts": (("attempts",), _attempts),
    "min_throughput": (("throughput",), _min_throughput),
    "max_ack_p99": (("latency",), _max_ack_p99),
    "max_recovery": (("recovery",), _max_recovery),
}

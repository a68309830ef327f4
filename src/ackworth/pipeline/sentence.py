"""The verdict in one plain sentence with its numbers."""

from ackworth.model.result import CheckResult, TrialResult
from ackworth.model.verdict import Verdict


def counted(number: int, what: str) -> str:
    """ "3 lost messages", "1 corrupt delivery"."""
    if number == 1:
        return f"1 {what}"
    return f"{number:,} {what[:-1]}ies" if what.endswith("y") else f"{number:,} {what}s"


def sentence(result: TrialResult) -> str:
    by_verdict = {verdict: [check for check in result["checks"] if check["verdict"] == verdict] for verdict in Verdict}
    match result["verdict"]:
        case Verdict.BROKEN:
            return f"Broken: {_broken(result, by_verdict[Verdict.BROKEN])}{_after(result)}."
        case Verdict.UNKNOWN:
            return f"Unknown: {'; '.join(dict.fromkeys(c['reason'] for c in _first(by_verdict[Verdict.UNKNOWN])))}."
    return f"Held: {_delivered(result)}{_after(result)}; {_rest(result)}."


def _first(checks: list[CheckResult]) -> list[CheckResult]:
    """Why a run is incomplete explains what else is not known."""
    return [check for check in checks if check["name"] == "complete"] or checks


def _broken(result: TrialResult, checks: list[CheckResult]) -> str:
    words = {check["name"]: check["reason"] for check in checks}
    if "lost" in words:
        acked = sum(group["expected"] for group in result["groups"])
        words["lost"] = f"{sum(g['lost'] for g in result['groups']):,} of {acked:,} acked messages were lost"
    return ", ".join(words.values())


def _delivered(result: TrialResult) -> str:
    expected = sum(group["expected"] for group in result["groups"])
    lost = sum(group["lost"] for group in result["groups"])
    if lost:
        return f"{lost:,} of {expected:,} acked messages were lost, which was allowed,"
    groups = len(result["groups"])
    to = f" to all {groups} groups" if groups > 1 else ""
    return f"all {result['account']['acked']:,} acked messages were delivered{to}"


def _after(result: TrialResult) -> str:
    names = [fault["name"].replace("-", " ") for fault in result["faults"]]
    words = [counted(names.count(name), name) for name in dict.fromkeys(names)]
    return f" after {' and '.join(words)}" if words else ""


def _rest(result: TrialResult) -> str:
    recovered = sum(group["recovered"] for group in result["groups"])
    extra = sum(group["duplicates"]["extra"] for group in result["groups"])
    doubled = f"{counted(extra, 'duplicate')}" if extra else "nothing doubled"
    return f"{counted(recovered, 'unanswered one')} recovered, {doubled}" if recovered else doubled

"""The plain judge's verdict: what each check must say of a history."""

from ackworth.model.verdict import Verdict
from ackworth.testing.histories import History, Mark
from ackworth.testing.oracle import account, defects, groups, sets
from ackworth.testing.oracle_times import detail, faults, ready

HELD, BROKEN, UNKNOWN = Verdict

NEVER_RIGHT = ("resurrected", "phantom", "corrupt", "misdelivered")


def verdicts(history: History) -> dict[str, Verdict]:
    found = groups(history)
    judged = {name: _seen(history, sum(group[name] for group in found)) for name in NEVER_RIGHT}
    judged["lost"] = _lost(history, sum(group["lost"] for group in found))
    unexplained = sum(group["duplicates"]["unexplained"] for group in found)
    claims = history.trial.claims
    judged["duplicates"] = _unless_allowed(history, "duplicates", unexplained, claims.once)
    judged["reordered"] = _unless_allowed(history, "reordered", sum(g["reordered"] for g in found), claims.ordered)
    judged["account"] = UNKNOWN if _troubled(history) or any(defects(history).values()) else HELD
    judged["complete"] = HELD if _drained(history) and account(history)["acked"] else UNKNOWN
    return judged


def _troubled(history: History) -> bool:
    return history.end is not None and bool(history.end.problems)


def _drained(history: History) -> bool:
    return history.end is not None and history.end.drained and not history.end.problems


def _expected(history: History, what: str) -> str:
    return str(history.trial.plan.get("expect", {}).get(what, "claimed"))


def _seen(history: History, number: int) -> Verdict:
    """What cannot be the run's own doing: to see it is enough."""
    if number:
        return BROKEN
    return HELD if _drained(history) else UNKNOWN


def _unless_allowed(history: History, what: str, number: int, claimed: bool) -> Verdict:
    expected = _expected(history, what)
    if _troubled(history):
        return UNKNOWN
    if expected == "any" or (expected == "claimed" and not claimed):
        return HELD
    return _seen(history, number)


def _lost(history: History, number: int) -> Verdict:
    if _troubled(history):
        return UNKNOWN
    if not number or _loss_is_allowed(history):
        return HELD
    return BROKEN if _drained(history) else UNKNOWN


def _loss_is_allowed(history: History) -> bool:
    """Every lost message was sent before the end of a fault that excuses it."""
    expected = _expected(history, "lost")
    struck = [fault for fault in faults(history) if detail(fault)["of"] != "consumer"]
    if expected == "before-fault":
        excuses = [fault.t_end for fault in struck]
    else:
        excuses = [_over(history, fault) for fault in struck if not _survives(history, fault)]
    lost = set().union(*(sets(history, group)["lost"] for group in range(len(history.trial.groups))))
    sent = [row.t for row in history.sent if (row.producer, row.seq) in lost]
    return expected == "any" or (expected != "none" and bool(excuses) and max(sent) <= max(excuses))


def _survives(history: History, fault: Mark) -> bool:
    claims = history.trial.claims
    return fault.name in claims.survives or (not detail(fault)["whole"] and fault.name in claims.survives_in_part)


def _over(history: History, fault: Mark) -> int:
    found = ready(history, fault)
    return fault.t_end if found is None else max(fault.t_end, found.t_end)

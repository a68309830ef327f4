"""The verdict in one plain sentence with its numbers."""

from ackworth.model.result import CheckResult, GroupAccount, TrialResult
from ackworth.model.verdict import Verdict
from ackworth.model.words import counted

_OTHERS = 2  # so many groups that lost something are named beside the first


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
        words["lost"] = _lost(result["groups"])
    return ", ".join(words.values())


def _delivered(result: TrialResult) -> str:
    groups, acked = result["groups"], result["account"]["acked"]
    if any(group["lost"] for group in groups):
        return f"{_lost(groups)}, which was allowed,"
    to = f" to all {len(groups)} groups" if len(groups) > 1 else ""
    if any(group["expected"] != acked for group in groups):
        to = f" to every group that reads {'it' if acked == 1 else 'them'}"
    all_of_them = "the 1 acked message was" if acked == 1 else f"all {acked:,} acked messages were"
    return f"{all_of_them} delivered{to}"


def _lost(groups: list[GroupAccount]) -> str:
    """ "2 of 8 acked messages were lost"; of several groups, what each lost of what it must have."""
    first, *others = [group for group in groups if group["lost"]]
    said = f"{_share(first)} acked messages {'was' if first['lost'] == 1 else 'were'} lost"
    if len(groups) == 1:
        return said
    told = [f"{said} to {first['name']}", *(f"{_share(group)} to {group['name']}" for group in others[:_OTHERS])]
    more = len(others) - _OTHERS
    return ", ".join([*told, *([f"some to {counted(more, 'more group')}"] if more > 0 else [])])


def _share(group: GroupAccount) -> str:
    return f"{group['lost']:,} of {group['expected']:,}"


def _after(result: TrialResult) -> str:
    """One strike may befall several nodes."""
    strikes = dict.fromkeys((fault["name"], fault["begin"]) for fault in result["faults"])
    names = [name.replace("-", " ") for name, _ in strikes]
    words = [counted(names.count(name), name) for name in dict.fromkeys(names)]
    return f" after {' and '.join(words)}" if words else ""


def _rest(result: TrialResult) -> str:
    recovered = result["account"]["recovered"]
    extra = sum(group["duplicates"]["extra"] for group in result["groups"])
    doubled = f"{counted(extra, 'duplicate')}" if extra else "nothing doubled"
    return f"{counted(recovered, 'unanswered one')} recovered, {doubled}" if recovered else doubled

"""The sections of one trial, in the order in which a reader asks."""

from collections.abc import Iterable, Mapping, Sequence

from ackworth.model.result import CheckResult, FaultResult, GroupAccount, Latency, Loss, RunResult, TrialResult
from ackworth.report import charts
from ackworth.report.markup import Html, join, table, tag
from ackworth.report.pictures import account_picture, loss_strip
from ackworth.report.published import Comparison, comparisons
from ackworth.report.text import SYMBOLS, count, duration, outline, rate, seconds, share, words

NEVER = "never"
POWER_CUT = "power-cut"

# What a cut through the file system cannot show; known from trying it.
BLIND_SPOTS = (
    "Data that was written with O_DIRECT and not fsynced survives this cut; on a real machine it may not.",
    "Sectors are written whole or not at all: torn sectors are not tried.",
    "There is no drive cache below: a drive that lies about its flushes is not tried.",
    "The data lay on a loop device, where an fsync costs 2 to 4 times what it costs on the disk below: "
    "the throughput measured here is not what the broker reaches on that disk.",
)

_PERCENTILES = (("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p99.9", "p999"), ("p99.99", "p9999"))
_GROUP_ROWS = (
    ("expected", "acked messages that the group must have"),
    ("distinct", "messages that reached it, each counted once"),
    ("lost", "acked and never delivered"),
    ("recovered", "not answered for certain, and delivered: fine"),
    ("resurrected", "refused, and delivered"),
    ("phantom", "delivered, never sent"),
    ("foreign", "of another run"),
    ("corrupt", "not what was sent"),
    ("misdelivered", "from the wrong topic, or to the wrong group"),
    ("reordered", "after a later one of its producer and topic"),
    ("delivered", "deliveries, repeats and all"),
)
_DUPLICATES = (
    ("extra", "duplicates", "deliveries beyond the first"),
    ("flagged", "– flagged", "the broker said that it may be a repeat"),
    ("explained", "– explained", "by a fault or a consumer's death"),
    ("unexplained", "– unexplained", "by nothing that happened"),
)


def trial_sections(result: RunResult, trial: TrialResult, limit: int) -> Html:
    return join(
        _section("Checks", _checks(trial["checks"])),
        _section("Account", _account(trial)),
        _section("Over time", charts.throughput(trial, limit), charts.latency(trial, limit)),
        _section("Latency percentiles", _latencies(trial["latency"])),
        _section("Losses, placed", *(_loss(loss) for loss in trial["losses"])),
        _section("Recovery", _recovery(trial["faults"])),
        _section("Published beside measured", *(_published(found) for found in comparisons(result, trial))),
        _section("Resources", _resources(trial)),
        _section("Notes", _list(trial["notes"])),
        _section("What this power cut cannot show", _blind_spots(trial["faults"])),
        _section("The trial", _folded("Plan", trial["plan"]), _folded("Broker", trial["broker"]), _folded("Judging", trial["judging"])),
    )


def badge(verdict: str) -> Html:
    symbol = tag("span", SYMBOLS.get(verdict, "?"), aria_hidden="true")
    return tag("span", symbol, f" {verdict}", class_=f"badge {verdict if verdict in SYMBOLS else 'unknown'}")


def _section(title: str, *content: Html | None) -> Html | None:
    """A section with nothing to say is not there."""
    return tag("section", tag("h3", title), *content) if any(content) else None


def _checks(checks: Sequence[CheckResult]) -> Html:
    rows = [[c["name"], badge(c["verdict"]), c["rule"], c["reason"], _ids(c["ids"])] for c in checks]
    if not rows:
        return tag("p", "No check was made.", class_="none")
    return table(["Check", "Verdict", "Rule", "Seen", "First ids"], rows, label="Checks", class_="stack checks")


def _ids(ids: Sequence[str]) -> Html:
    return join(*(tag("code", name) for name in ids)) if ids else tag("span", "none", class_="quiet")


def _account(trial: TrialResult) -> Html:
    account = trial["account"]
    parts = ("acked", account["acked"]), ("refused", account["refused"]), ("unknown", account["unknown"]), ("unanswered", account["unanswered"])
    equation = [f"{count(account['sent'])} sent", " = ", " + ".join(f"{count(n)} {name}" for name, n in parts)]
    return join(
        tag("p", *equation, class_="equation"),
        account_picture(account, trial["groups"]),
        _group_table(trial["groups"]),
        _reasons(account["reasons"]),
    )


def _group_table(groups: Sequence[GroupAccount]) -> Html | None:
    if not groups:
        return None
    plain: list[dict[str, object]] = [dict(group) for group in groups]
    rows = [[_term(name, name, means), *(count(group[name]) for group in plain)] for name, means in _GROUP_ROWS]

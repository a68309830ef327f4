"""The sections of one trial, in the order in which a reader asks."""

from collections.abc import Mapping, Sequence

from ackworth.model.result import CheckResult, FaultResult, Latency, RunResult, TrialResult
from ackworth.report import charts
from ackworth.report.account import account_section, loss_section
from ackworth.report.markup import Html, join, table, tag
from ackworth.report.published import Comparison, comparisons
from ackworth.report.summary import NEVER, NOT_ASKED, absent
from ackworth.report.text import SYMBOLS, UNKNOWN, count, duration, fields, outline, quantity, seconds, size, words

POWER_CUT = "power-cut"

# What a cut through the file system cannot show.
BLIND_SPOTS = (
    "Data written with O_DIRECT and not fsynced survives this cut; in a real one it may be lost.",
    "Sectors are written whole or not at all: torn sectors are not tried.",
    "There is no drive cache: a drive that lies about its flushes is not tried.",
    "The data lay on a loop device, where an fsync costs 2 to 4 times what it costs on the disk below: "
    "the throughput here is not what the broker reaches on that disk.",
)

_PERCENTILES = (
    ("p50", "p50"),
    ("p90", "p90"),
    ("p99", "p99"),
    ("p99.9", "p999"),
    ("p99.99", "p9999"),
    ("max, of those that came back", "max"),
)


def trial_sections(result: RunResult, trial: TrialResult, limit: int) -> Html:
    return join(
        _section("Checks", _checks(trial["checks"])),
        _section("Account", account_section(trial)),
        _section("Over time", charts.throughput(trial, limit), charts.latency(trial, limit)),
        _section("Latency percentiles", _latencies(trial["latency"])),
        _section("Where the losses lie", *(loss_section(loss) for loss in trial["losses"])),
        _section("Recovery", _recovery(trial["faults"])),
        _section("Published beside measured", *(_published(result, found) for found in comparisons(result, trial))),
        _section("Resources", _limit(trial), _resources(trial)),
        _section("Notes", bullets(trial["notes"])),
        _section("What the power cut cannot show", _blind_spots(trial["faults"])),
        _section(
            "Plan and broker",
            *(folded(words(name), fields(trial)[name]) for name in ("plan", "broker", "judging")),
        ),
    )


def badge(verdict: str) -> Html:
    """The verdict as a word and a symbol; the colour only repeats them."""
    return tag("span", tag("span", SYMBOLS[verdict], aria_hidden="true"), f" {verdict}", class_=f"badge {verdict}")


def bullets(texts: Sequence[str]) -> Html | None:
    return tag("ul", *(tag("li", text) for text in texts), class_="notes") if texts else None


def folded(title: str, data: object) -> Html | None:
    if not data:
        return None
    return tag("details", tag("summary", title), tag("pre", outline(data)), class_="data")


def _section(title: str, *content: Html | None) -> Html | None:
    """A section that has nothing to say is not there."""
    return tag("section", tag("h3", title), *content) if any(content) else None


def _checks(checks: Sequence[CheckResult]) -> Html:
    if not checks:
        return tag("p", "No check was made.", class_="none")
    shown = 5 if any(check["ids"] for check in checks) else 4  # columns: an empty one says nothing
    rows = [[c["name"], badge(c["verdict"]), c["rule"], c["reason"], _ids(c["ids"])][:shown] for c in checks]
    head = ["Check", "Verdict", "Rule", "Seen", "First ids"][:shown]
    return table(head, rows, label="Checks", class_="stack checks")


def _ids(ids: Sequence[str]) -> Html:
    return tag("span", *(tag("code", name) for name in ids), class_="ids") if ids else Html()


def _latencies(latency: Mapping[str, Latency]) -> Html | None:
    measured = list(latency.values())
    rows = [[name, *(duration(fields(m)[key], none=absent(m)) for m in measured)] for name, key in _PERCENTILES]
    rows.append(["mean, of those that came back", *(duration(m["mean"], none="none") for m in measured)])
    rows.append(["measured", *(count(m["count"]) for m in measured)])
    rows.append(["never came back", *(count(m["censored"]) for m in measured)])
    head = ["", *(words(name).replace(" to ", " → ") for name in latency)]
    return table(head, rows, label="Latency percentiles", class_="numbers") if measured else None


def _recovery(faults: Sequence[FaultResult]) -> Html | None:
    rows = [
        [
            join(f"{fault['name']} {fault['node']}".strip(), tag("small", _detail(fault))),
            seconds(fault["begin"]),
            seconds(fault["end"] - fault["begin"]),
            NEVER if fault["ready"] is None else seconds(fault["ready"] - fault["begin"]),
            seconds(fault["first_ack"], none=NEVER if fault["asked"] else NOT_ASKED),
            seconds(fault["first_delivery"], none=NEVER),
        ]
        for fault in faults
    ]
    head = ["Fault", "At", "Strike took", "Ready after", "First ack after", "First delivery after"]
    return table(head, rows, label="Recovery after each fault", class_="stack numbers") if rows else None


def _detail(fault: FaultResult) -> str:
    return ", ".join(" ".join(quantity(key, value)) for key, value in fault["detail"].items())


def _published(result: RunResult, found: Comparison) -> Html:
    rows = [[pair.what, pair.published, pair.measured] for pair in found.pairs]
    label = f"Published by {found.source} beside measured here"
    head = ["", "Published", f"Measured, size {result['size']}"]
    machines = f"{found.source}. Published on: {found.hardware}. Measured on: {_machine(result)}."
    return join(table(head, rows, label=label, class_="numbers"), tag("p", machines, class_="quiet"))


def _machine(result: RunResult) -> str:
    environment = result["environment"]
    cores, memory = environment.get("cores"), environment.get("memory_bytes")
    known = [environment.get("cpu"), cores and f"{cores} cores", memory and size(memory)]
    return ", ".join(str(part) for part in known if part) or UNKNOWN


def _limit(trial: TrialResult) -> Html | None:
    return tag("p", trial["limit"]["said"]) if trial["limit"]["said"] else None


def _resources(trial: TrialResult) -> Html | None:
    cards = charts.resources(trial)
    return tag("div", *cards, class_="cards") if cards else None


def _blind_spots(faults: Sequence[FaultResult]) -> Html | None:
    return bullets(BLIND_SPOTS) if any(fault["name"].startswith(POWER_CUT) for fault in faults) else None

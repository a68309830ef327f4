"""The price of an ack as a table, for the page and for the terminal."""

from collections.abc import Callable, Mapping, Sequence

from ackworth.model.result import Latency, PriceRow, Toll
from ackworth.report.markup import Html, join, table, tag
from ackworth.report.text import SYMBOLS, count, duration, rate, seconds, share, words

NOT_MEASURED = "not measured"
NEVER = "never"


def settings(row: PriceRow) -> str:
    return ", ".join(f"{name}={value}" for name, value in row["settings"].items()) or "as it is"


def sentence(rows: Sequence[PriceRow], verdict: str) -> str:
    """'Broken: 5 of 6 settings kept what is claimed of them; not so redis-streams appendonly=always (broken).'"""
    bad = [f"{row['broker']} {settings(row)} ({row['verdict']})" for row in rows if row["verdict"] != "held"]
    kept = f"{verdict.capitalize()}: {len(rows) - len(bad)} of {len(rows)} settings kept what is claimed of them"
    return f"{kept}; not so {', '.join(bad)}." if bad else f"{kept}."


def span(values: Sequence[float | None], show: Callable[[float], str]) -> str:
    """The least and the greatest of the repeats, or one if they look the same; what is not known is said."""
    found = [value for value in values if value is not None]
    if not found:
        return "unknown" if values else NOT_MEASURED
    low, high = show(min(found)), show(max(found))
    unsure = "" if len(found) == len(values) else f" ({len(values) - len(found)} unknown)"
    return (low if low == high else f"{low} to {high}") + unsure


def percentiles(found: Sequence[Latency]) -> str:
    """'1.2 ms / 3.4 ms': the median and the 99th percentile, the worst of the repeats."""
    if not found:
        return NOT_MEASURED
    return f"{_worst(found, 'p50')} / {_worst(found, 'p99')}"


def _worst(found: Sequence[Latency], key: str) -> str:
    """Of those that measured something."""
    values: list[float | None] = [
        latency[key]  # type: ignore[literal-required]
        for latency in found
        if latency["count"] + latency["censored"]
    ]
    return NEVER if None in values else duration(max((value for value in values if value is not None), default=None))


def _highest(toll: Toll) -> str:
    pairs = [(part / of, part, of) for part, of in zip(toll["lost"], toll["acked"], strict=True) if part and of]
    _, part, of = max(pairs)
    return share(part, of)


def _whole(number: float) -> str:
    return count(int(number))


def _time(number: float) -> str:
    return seconds(number) if number else "0"


def fate(toll: Toll) -> tuple[str, str]:
    """The colour and the words of a cell: a loss that nobody promised to prevent is neither held nor broken.

    The number of lost messages stands beside it: what else is broken is named, lest that be taken for the reason.
    """
    if toll["verdict"] == "held" and not toll["claimed"]:
        return "unclaimed", "not claimed"
    why = "" if toll["broken"] in ([], ["lost"]) else f": {', '.join(toll['broken'])}"
    return toll["verdict"], f"{SYMBOLS[toll['verdict']]} {toll['verdict']}{why}"


def details(toll: Toll) -> list[str]:
    """What else is to be said of a fault, each in a few words."""
    part = f"up to {_highest(toll)} " if any(toll["lost"]) else ""
    said = [f"{part}of {span(toll['acked'], _whole)} acked", f"back after {span(toll['recovery'], seconds)}"]
    if any(toll["lost"]):
        said += [f"loss window {span(toll['window'], _time)}", f"holes {span(toll['holes'], count)}"]
    said += [f"{what} {span(values, count)}" for what, values in _oddities(toll).items() if any(values)]
    if toll["refused"]:
        said.append(f"refused to start in {len(toll['refused'])} of {len(toll['trials'])} trials")
    return said + list(dict.fromkeys(toll["repaired"]))


def _oddities(toll: Toll) -> dict[str, list[int | None]]:
    return {"recovered": toll["recovered"], "duplicates": toll["duplicates"]}


# ---- the page ---------------------------------------------------------------------------------------


def section(rows: Sequence[PriceRow], anchors: Mapping[str, str]) -> Html:
    """The table; every cell leads to the trials that it comes from."""
    kinds = _kinds(rows)
    head = ["Broker and setting", "Acked a second", "Ack p50 / p99", "Delivery p50 / p99", *map(_after, kinds)]
    body = [[_name(row), *_calm(row, anchors), *(_cell(_toll(row, kind), anchors) for kind in kinds)] for row in rows]
    made = table(head, body, label="The price of an ack", class_="stack price")
    sources = {row["broker"]: row["source"] for row in rows}
    claims = [tag("p", f"What {name} claims: {source}", class_="quiet") for name, source in sources.items()]
    return tag("section", tag("h2", "The price of an ack"), _legend(), made, *claims)


def _legend() -> Html:
    text = (
        "Lost: acked messages that were gone afterwards, from the least to the most of the repeats. Latencies are "
        "those at the rate that the plan sets. ✓ held and ✗ broken are against what the broker claims at that setting; "
        "where it claims nothing, it cannot break its word. Limit: which side held the speed back; none means that "
        "the load waited for answers. If it is the generator, the speed is not the broker's."
    )
    return tag("p", text, class_="quiet")


def _name(row: PriceRow) -> Html:
    """With its verdict if it did not hold, which may be due to a trial without a fault."""
    verdict = row["verdict"]
    badge = tag("span", f"{SYMBOLS[verdict]} {verdict}", class_=f"badge {verdict}") if verdict != "held" else None
    return join(row["broker"], " ", tag("b", settings(row)), tag("small", row["version"]), badge)


def _calm(row: PriceRow, anchors: Mapping[str, str]) -> list[Html]:
    return [
        tag("div", tag("b", span(row["acked_per_second"], rate)), _limits(row), _links(row["fast"], anchors)),
        tag("div", tag("span", percentiles(row["ack"])), _links(row["late"], anchors)),
        tag("div", tag("span", percentiles(row["delivery"])), _links(row["late"], anchors)),
    ]


def _limits(row: PriceRow) -> Html | None:
    return tag("small", f"limit: {', '.join(dict.fromkeys(row['limits']))}") if row["limits"] else None


def _cell(toll: Toll | None, anchors: Mapping[str, str]) -> Html:
    if toll is None:
        return tag("span", NOT_MEASURED, class_="none")
    kind, said = fate(toll)
    head = join(tag("span", said, class_=f"badge {kind}"), " ", tag("b", f"{span(toll['lost'], _whole)} lost"))
    return tag("div", head, tag("small", "; ".join(details(toll))), _links(toll["trials"], anchors))


def _links(trials: Sequence[str], anchors: Mapping[str, str]) -> Html | None:
    if not trials:
        return None
    links = [tag("a", str(n), href=anchors[name], title=name) for n, name in enumerate(trials, 1)]
    return tag("small", "trials " if len(links) > 1 else "trial ", *(join(link, " ") for link in links), class_="links")


# ---- the terminal -----------------------------------------------------------------------------------


def head(rows: Sequence[PriceRow]) -> list[str]:
    return ["Broker", "Setting", "Acked a second", "Ack p50 / p99", *(f"Lost after {kind}" for kind in _kinds(rows))]


def lines(rows: Sequence[PriceRow]) -> list[list[str]]:
    return [
        [
            row["broker"],
            settings(row),
            span(row["acked_per_second"], rate),
            percentiles(row["ack"]),
            *(_short(_toll(row, kind)) for kind in _kinds(rows)),
        ]
        for row in rows
    ]


def _short(toll: Toll | None) -> str:
    return NOT_MEASURED if toll is None else f"{fate(toll)[1]}, {span(toll['lost'], _whole)}"


def _kinds(rows: Sequence[PriceRow]) -> list[str]:
    return list(dict.fromkeys(toll["fault"] for row in rows for toll in row["tolls"]))


def _toll(row: PriceRow, kind: str) -> Toll | None:
    return next((toll for toll in row["tolls"] if toll["fault"] == kind), None)


def _after(kind: str) -> str:
    return f"After a {words(kind.replace('-', '_'))}"

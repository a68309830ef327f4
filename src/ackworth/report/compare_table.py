"""A comparison for readers: a table for the terminal, and plain data for scripts."""

from collections.abc import Sequence
from typing import Any

from ackworth.model.verdict import Verdict
from ackworth.report.compare import Change, Compared, Line
from ackworth.report.terminal import Style, text_table
from ackworth.report.text import SYMBOLS, UNKNOWN

SAID = {Verdict.HELD: "no regression", Verdict.BROKEN: "regression", Verdict.UNKNOWN: "could not be told"}


def render(compared: Compared, names: Sequence[str], style: Style) -> str:
    blocks = [_changed(compared, names), text_table(["Trial", "Measure", *names, "Found"], _rows(compared), style)]
    if compared.unmatched:
        blocks.append(f"Only in some of the runs: {', '.join(compared.unmatched)}")
    return "\n\n".join([*blocks, _headline(compared)]) + "\n"


def plain(compared: Compared, names: Sequence[str]) -> dict[str, Any]:
    return {
        "verdict": compared.verdict,
        "runs": list(names),
        "changed": dict(zip(names[1:], map(list, compared.changed[1:]), strict=True)),
        "unmatched": list(compared.unmatched),
        "lines": [_plain_line(line) for line in compared.lines],
    }


def _plain_line(line: Line) -> dict[str, Any]:
    return {
        "trial": line.trial,
        "measure": _measure(line),
        "values": [list(values) if isinstance(values, tuple) else values for values in line.values],
        "worse": [change.worse if change and change.worse != float("inf") else None for change in line.changes[1:]],
        "beyond_noise": [change.beyond_noise if change else None for change in line.changes[1:]],
        "verdict": line.verdict,
    }


def _changed(compared: Compared, names: Sequence[str]) -> str:
    blocks = []
    for name, changed in zip(names[1:], compared.changed[1:], strict=True):
        lines = changed or ("nothing that is on record",)
        blocks.append("\n".join([f"What differs in {name} from {names[0]}:", *(f"  {line}" for line in lines)]))
    return "\n\n".join(blocks)


def _rows(compared: Compared) -> list[list[str]]:
    return [
        [line.trial, _measure(line), *_cells(line), f"{SYMBOLS[line.verdict]} {SAID[line.verdict]}"]
        for line in compared.lines
    ]


def _measure(line: Line) -> str:
    return line.measure.name if line.measure else "verdict"


def _cells(line: Line) -> list[str]:
    if line.measure is None:
        return [str(verdict) for verdict in line.values]
    return [_cell(line, values, change) for values, change in zip(line.values, line.changes, strict=True)]


def _cell(line: Line, values: Sequence[float | None], change: Change | None) -> str:
    """'13,400/s to 13,900/s, 12% worse, more than noise'."""
    assert line.measure is not None
    found = [value for value in values if value is not None]
    if not found:
        return UNKNOWN
    low, high = line.measure.show(min(found)), line.measure.show(max(found))
    parts = [low if low == high else f"{low} to {high}"]
    if len(found) < len(values):
        parts.append(f"{len(values) - len(found)} unknown")
    return ", ".join([*parts, *(_how(change) if change else ())])


def _how(change: Change) -> list[str]:
    if change.worse is None or change.worse == 0:
        return []
    size = abs(change.worse)
    amount = "" if size == float("inf") else "less than 1% " if size < 0.005 else f"{size:.0%} "
    noise = {True: "more than noise", False: "within noise", None: "noise unknown"}[change.beyond_noise]
    return [f"{amount}{'worse' if change.worse > 0 else 'better'}", noise]


def _headline(compared: Compared) -> str:
    verdicts = compared.verdicts
    bad, unsure = verdicts.count(Verdict.BROKEN), verdicts.count(Verdict.UNKNOWN)
    word = f"{SYMBOLS[compared.verdict]} {SAID[compared.verdict]}"
    counts = [f"{bad} worse"] * bool(bad) + [f"{unsure} could not be told"] * bool(unsure)
    return f"{word}: {', '.join(counts)} of {len(verdicts)}" if counts else f"{word} in {len(verdicts)}"

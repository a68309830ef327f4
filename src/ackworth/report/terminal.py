"""The verdict for the terminal: plain text, as wide as there is room, in colour only where someone looks."""

import os
import re
import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from ackworth.model.result import CheckResult, FaultResult, GroupAccount, Latency, RunResult, TrialResult
from ackworth.report import price_table
from ackworth.report.summary import COLUMNS, NEVER, NOT_ASKED, absent, figures, rates
from ackworth.report.text import SYMBOLS, clean, count, duration, fields, seconds, words

DETAILED_TRIALS = 3  # with more of them, only what did not hold is told
NARROWEST, USUAL, WIDEST = 40, 100, 120
GAP = "  "
BOLD = "1"
COLOURS = {"held": "32", "broken": "31", "unknown": "33"}
_UNIT = re.compile(r"(?<=\d) (?=(?:ns|µs|ms|s|MiB)\b)")  # no line ends between a number and its unit


@dataclass(frozen=True)
class Style:
    width: int = USUAL
    colour: bool = False
    room: int | None = None  # for a table: a terminal would break a longer line, a file has none that is too long

    @classmethod
    def of(cls, stream: TextIO) -> "Style":
        """As the stream allows: colour on a terminal, unless NO_COLOR is set."""
        columns = max(shutil.get_terminal_size((USUAL, 24)).columns, NARROWEST)
        colour = stream.isatty() and not os.environ.get("NO_COLOR")
        return cls(min(columns, WIDEST), colour, columns if stream.isatty() else None)

    def paint(self, text: str, code: str) -> str:
        return f"\033[{code}m{text}\033[0m" if self.colour else text


def render_terminal(result: RunResult, style: Style, page: Path | None = None) -> str:
    trials = result["trials"]
    blocks = [_headline(result, style)]
    if result["price"]:
        blocks.append(text_table(price_table.head(result["price"]), price_table.lines(result["price"]), style))
    elif len(trials) > 1:
        rows = [[trial["trial"], _verdict(trial["verdict"]), *figures(trial)] for trial in trials]
        blocks.append(text_table(COLUMNS, rows, style, numbers=True))
    if len(trials) <= DETAILED_TRIALS:
        blocks += [_trial(trial, style, named=len(trials) > 1) for trial in trials]
    else:
        blocks += [_what_did_not_hold(trial, style) for trial in trials if trial["verdict"] != "held"]
    if page:
        blocks.append(f"Report: {page}")
    return "\n\n".join(blocks) + "\n"


def _headline(result: RunResult, style: Style) -> str:
    word = _verdict(result["verdict"]).upper()
    said = result["sentence"].removeprefix(f"{result['verdict'].capitalize()}: ")  # the word stands there already
    text = _hang(word, said, style).removeprefix(word)
    return style.paint(word, f"{BOLD};{COLOURS[result['verdict']]}") + style.paint(text, BOLD)


def _verdict(verdict: str) -> str:
    return f"{SYMBOLS[verdict]} {verdict}"


def _trial(trial: TrialResult, style: Style, *, named: bool) -> str:
    title = [_hang(trial["trial"], trial["sentence"], style)] if named else []
    return "\n".join([*title, _checks(trial["checks"], style), "", *_facts(trial, style)])


def _what_did_not_hold(trial: TrialResult, style: Style) -> str:
    checks = [check for check in trial["checks"] if check["verdict"] != "held"]
    return "\n".join([_hang(trial["trial"], trial["sentence"], style), _checks(checks, style)])


def _checks(checks: Sequence[CheckResult], style: Style) -> str:
    rows = [[check["name"], _verdict(check["verdict"]), _seen(check)] for check in checks]
    return text_table(("Check", "Verdict", "Seen"), rows, style) if rows else "No check was made."


def _seen(check: CheckResult) -> str:
    return check["reason"] + (f" (first: {', '.join(check['ids'][:3])})" if check["ids"] else "")


def _facts(trial: TrialResult, style: Style) -> list[str]:
    facts = [
        ("account", _account(trial)),
        *((f"group {group['name']}", _group(group)) for group in trial["groups"]),
        ("throughput", rates(trial)),
        *((words(name).replace(" to ", "→"), _latency(found)) for name, found in trial["latency"].items()),
        *((f"{fault['name']} {fault['node']}".strip(), _recovery(fault)) for fault in trial["faults"]),
        ("limit", trial["limit"]["said"]),
        *(("note", note) for note in trial["notes"]),
    ]
    wide = max(len(name) for name, _ in facts)
    return [_hang(name.ljust(wide), text, style) for name, text in facts if text]


def _hang(name: str, text: str, style: Style) -> str:
    """A name and its text beside it; further lines begin where the text began."""
    begin = clean(name) + GAP
    whole = _UNIT.sub("\u00a0", clean(text))
    lines = textwrap.fill(whole, style.width, initial_indent=begin, subsequent_indent=" " * len(begin))
    return lines.replace("\u00a0", " ")


def _account(trial: TrialResult) -> str:
    account = trial["account"]
    parts = [f"{count(fields(account)[name])} {name}" for name in ("acked", "refused", "unknown", "unanswered")]
    return f"{count(account['sent'])} sent = {' + '.join(parts)}"


def _group(group: GroupAccount) -> str:
    """What it must have and got, what it lost, and whatever else is not nothing."""
    oddities = ("recovered", "resurrected", "phantom", "corrupt", "misdelivered", "reordered")
    found = [f"{count(fields(group)[name])} {name}" for name in oddities if fields(group)[name]]
    repeats = [f"{count(group['duplicates']['extra'])} duplicates"] if group["duplicates"]["extra"] else []
    got = f"{count(group['expected'] - group['lost'])} of {count(group['expected'])} acked delivered"
    return ", ".join([got, f"{count(group['lost'])} lost", *found, *repeats])


def _latency(latency: Latency) -> str:
    if not latency["count"] + latency["censored"]:
        return "none measured"
    marks = (("p50", "p50"), ("p99", "p99"), ("p99.9", "p999"), ("max", "max"))
    shown = [f"{label} {duration(fields(latency)[key], none=absent(latency))}" for label, key in marks]
    return ", ".join([*shown, f"{count(latency['censored'])} never came back"])


def _recovery(fault: FaultResult) -> str:
    ready = None if fault["ready"] is None else fault["ready"] - fault["begin"]
    waits = (("ready", ready), ("first ack", fault["first_ack"]), ("first delivery", fault["first_delivery"]))
    after = [f"{name} {'after ' + seconds(wait) if wait is not None else NEVER}" for name, wait in waits]
    if not fault["asked"] and fault["first_ack"] is None:
        after[1] = f"{NOT_ASKED} afterwards"
    return f"at {seconds(fault['begin'])}; {', '.join(after)}"


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], style: Style, *, numbers: bool = False) -> str:
    """Columns as wide as they need; if the line is full, the last one is broken into lines of its own."""
    columns = list(zip(head, *([clean(cell) for cell in row] for row in rows), strict=True))
    widths = [max(map(len, column)) for column in columns]
    before = sum(widths[:-1]) + len(GAP) * (len(head) - 1)
    widths[-1] = min(widths[-1], max(style.width - before, NARROWEST // 2))
    if style.room is not None and before + widths[-1] > style.room:
        return "\n\n".join(_stacked(head, row, style) for row in rows)
    # After the name and the verdict, numbers stand at the right of their columns.
    aligns = [str.rjust if numbers and place > 1 else str.ljust for place in range(len(columns))]
    aligned = [
        [align(cell, wide) for cell in cells] for align, wide, cells in zip(aligns, widths, columns, strict=True)
    ]
    top, *lines = [_line(row, widths[-1]) for row in zip(*aligned, strict=True)]
    return "\n".join([top, GAP.join("-" * wide for wide in widths), *(_tint(line, style) for line in lines)])


def _stacked(head: Sequence[str], row: Sequence[str], style: Style) -> str:
    """A row for a narrow terminal: its name, and a line for each of the other cells."""
    wide = max(map(len, head[1:]))
    cells = [_hang(GAP + name.ljust(wide), cell, style) for name, cell in zip(head[1:], row[1:], strict=True)]
    return _tint("\n".join([clean(row[0]), *cells]), style)


def _line(row: Sequence[str], last_width: int) -> str:
    begin = "".join(cell + GAP for cell in row[:-1])
    first, *rest = textwrap.wrap(row[-1], last_width) or [""]
    return "\n".join([(begin + first).rstrip(), *(" " * len(begin) + more for more in rest)])


def _tint(line: str, style: Style) -> str:
    for verdict, colour in COLOURS.items():
        line = line.replace(_verdict(verdict), style.paint(_verdict(verdict), colour), 1)
    return line

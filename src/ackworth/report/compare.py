"""Runs of one plan side by side: what differs, and whether by more than the noise of the repeats.

1. Trials belong together if they have the same case and the same cell of the matrix. Runs that share none, as those
   of two brokers, are put together by their cases.
2. A measure has a value for each repeat. Its noise is the span of these values: a difference counts as more than
   noise if the spans do not touch. Of a single repeat nothing is known about noise, and that is said.
3. Worse by more than the threshold, and not within the noise, is a regression; so is a verdict that was held and is
   broken. What was known and is not known any more is unknown, and never passes as well; nor does what is broken and
   was not known before.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ackworth.model.errors import BadInput
from ackworth.model.result import RunResult, TrialResult
from ackworth.model.verdict import Verdict, worst
from ackworth.report.difference import Difference, differences
from ackworth.report.figures import counted, paced, percentile, planned, recovery
from ackworth.report.text import duration, fields, rate, seconds, significant

Key = tuple[str, str]  # case and cell
Repeats = list[TrialResult]


@dataclass(frozen=True)
class Measure:
    name: str
    more_is_better: bool
    show: Callable[[float], str]
    of: Callable[[TrialResult], float | None]
    applies: Callable[[TrialResult], bool]


def _lost(trial: TrialResult) -> float | None:
    """Percent of what was acked."""
    lost, expected = counted(trial, "lost"), counted(trial, "expected")
    return 100 * lost / expected if lost is not None and expected else None


def _calm_and_paced(trial: TrialResult) -> bool:
    return paced(trial) and not planned(trial)


# How fast shows where nothing holds the load back, how late where something does.
MEASURES = (
    Measure("acked a second", True, rate, lambda t: t["throughput"].get("acked_per_second"), lambda t: not paced(t)),
    Measure("ack p50", False, duration, lambda t: percentile(t, "due_to_ack", "p50"), _calm_and_paced),
    Measure("ack p99", False, duration, lambda t: percentile(t, "due_to_ack", "p99"), _calm_and_paced),
    Measure("delivery p99", False, duration, lambda t: percentile(t, "sent_to_delivery", "p99"), _calm_and_paced),
    Measure("lost of acked", False, lambda percent: f"{significant(percent)}%", _lost, lambda t: True),
    Measure("recovery", False, seconds, recovery, lambda t: bool(planned(t))),
)


@dataclass(frozen=True, kw_only=True)
class Change:
    """A measure of one run against the same one of the first."""

    before: tuple[float | None, ...]  # by repeat
    after: tuple[float | None, ...]
    worse: float | None  # by how much of the first's mean; negative: better; None: it could not be told
    beyond_noise: bool | None  # None: a single repeat does not show its noise
    regression: bool


@dataclass(frozen=True, kw_only=True)
class Line:
    trial: str
    measure: Measure | None  # None: the verdict
    values: tuple[Any, ...]  # a run each: values by repeat, or the verdict
    changes: tuple[Change | None, ...]  # a run each; None for the first
    verdict: Verdict  # held: nothing is worse; broken: a regression; unknown: it could not be told


@dataclass(frozen=True, kw_only=True)
class Compared:
    lines: tuple[Line, ...]
    changed: tuple[tuple[str, ...], ...]  # a run each, what differs from the first
    unmatched: tuple[str, ...]  # trials that only some of the runs have
    gone: tuple[str, ...]  # those of them that the first has: of what became of them nothing is known

    @property
    def verdicts(self) -> list[Verdict]:
        return [*(line.verdict for line in self.lines), *(Verdict.UNKNOWN for _ in self.gone)]

    @property
    def verdict(self) -> Verdict:
        return worst(self.verdicts)


def compare(runs: Sequence[RunResult], threshold: float) -> Compared:
    """The threshold is a part of the first run's mean: 0.1 for a tenth. Raises BadInput."""
    if len({run["plan"] for run in runs}) > 1:
        names = ", ".join(dict.fromkeys(run["plan"] for run in runs))
        raise BadInput(f"these are runs of different plans ({names}): compare runs of the same plan")
    tables = _matched([_by_key(run) for run in runs])
    keys = [key for key in tables[0] if all(key in table for table in tables)]
    everything = dict.fromkeys(key for table in tables for key in table)
    lines = [line for key in keys for line in _lines(_name(key), [table[key] for table in tables], threshold)]
    return Compared(
        lines=tuple(lines),
        changed=tuple(_changed(runs[0], run, tables[0], table) for run, table in zip(runs, tables, strict=True)),
        unmatched=tuple(_name(key) for key in everything if key not in keys),
        gone=tuple(_name(key) for key in tables[0] if key not in keys),
    )


def _by_key(run: RunResult) -> dict[Key, Repeats]:
    found: dict[Key, Repeats] = {}
    for trial in run["trials"]:
        found.setdefault((trial["case"], trial["cell"]), []).append(trial)
    return found


def _matched(tables: list[dict[Key, Repeats]]) -> list[dict[Key, Repeats]]:
    """By case and cell; if they share none, by case alone."""
    if set(tables[0]).intersection(*tables[1:]):
        return tables
    by_case = [{(case, ""): repeats for (case, _), repeats in table.items()} for table in tables]
    alone = all(len(short) == len(table) for short, table in zip(by_case, tables, strict=True))
    if not alone or not set(by_case[0]).intersection(*by_case[1:]):
        raise BadInput("these runs have no trial in common: compare runs on the same brokers, or on one broker each")
    return by_case


def _name(key: Key) -> str:
    return " ".join(filter(None, key)) or "trial"


def _lines(name: str, runs: Sequence[Repeats], threshold: float) -> Iterator[Line]:
    yield _verdict_line(name, runs)
    for measure in MEASURES:
        if all(measure.applies(trial) for repeats in runs for trial in repeats):
            values = [tuple(measure.of(trial) for trial in repeats) for repeats in runs]
            changes = [_change(measure, values[0], after, threshold) for after in values[1:]]
            verdict = worst(map(_judged, changes))
            yield Line(trial=name, measure=measure, values=tuple(values), changes=(None, *changes), verdict=verdict)


def _verdict_line(name: str, runs: Sequence[Repeats]) -> Line:
    verdicts = [worst(Verdict(trial["verdict"]) for trial in repeats) for repeats in runs]
    nothing = (None,) * len(runs)
    news = worst(_news(verdicts[0], after) for after in verdicts[1:])
    return Line(trial=name, measure=None, values=tuple(verdicts), changes=nothing, verdict=news)


def _news(before: Verdict, after: Verdict) -> Verdict:
    """What was broken already is no news."""
    if after == Verdict.BROKEN:
        return {Verdict.HELD: Verdict.BROKEN, Verdict.BROKEN: Verdict.HELD}.get(before, Verdict.UNKNOWN)
    return after


def _change(
    measure: Measure, before: tuple[float | None, ...], after: tuple[float | None, ...], threshold: float
) -> Change:
    old, new = ([v for v in values if v is not None] for values in (before, after))
    told = bool(old) and len(new) == len(after)
    worse = _worse(measure, fmean(old), fmean(new)) if told else None
    beyond = None if min(len(old), len(new)) < 2 else max(old) < min(new) or max(new) < min(old)
    regression = worse is not None and worse > threshold and beyond is not False
    return Change(before=before, after=after, worse=worse, beyond_noise=beyond, regression=regression)


def _worse(measure: Measure, old: float, new: float) -> float:
    more = old - new if measure.more_is_better else new - old
    return more / old if old else float("inf") if more > 0 else 0.0


def _judged(change: Change) -> Verdict:
    if change.regression:
        return Verdict.BROKEN
    # Nothing is lost where nothing was known before.
    never_known = all(value is None for value in change.before)
    return Verdict.UNKNOWN if change.worse is None and not never_known else Verdict.HELD


def _changed(
    first: RunResult, other: RunResult, before: dict[Key, Repeats], after: dict[Key, Repeats]
) -> tuple[str, ...]:
    pairs = [(_facts(first), _facts(other))]
    pairs += [(_set_up(before[key][0]), _set_up(after[key][0])) for key in before if key in after]
    found: dict[str, list[Difference]] = {}
    for old, new in pairs:
        for difference in differences(old, new):
            found.setdefault(difference.key, []).append(difference)
    return tuple(_told(some) for some in found.values())


def _facts(run: RunResult) -> dict[str, Any]:
    """What may differ between runs without making one of another plan."""
    return {name: fields(run)[name] for name in ("size", "seed", "ackworth", "environment")}


def _set_up(trial: TrialResult) -> dict[str, Any]:
    return {name: fields(trial)[name] for name in ("broker", "plan")}


def _told(some: Sequence[Difference]) -> str:
    """One line for a key, also where it differs in many trials and not everywhere in the same way."""
    words = list(dict.fromkeys(map(str, some)))
    return (
        words[0]
        if len(words) == 1
        else f"{some[0].key}: differs in {len(some)} trials, as {words[0].partition(': ')[2]}"
    )

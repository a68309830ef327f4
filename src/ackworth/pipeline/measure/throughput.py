"""Throughput: messages sent, acked and delivered in each second of the trial, and how many a second.

Each second counts all; how many they are a second is counted without those that were sent in a warm-up.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ackworth.model.clock import SECOND
from ackworth.pipeline import histogram
from ackworth.pipeline.context import Context
from ackworth.pipeline.histogram import Counted
from ackworth.pipeline.measurement import TOTAL, Findings, Key, Measurement
from ackworth.pipeline.rows import Rows

KINDS = ("sent", "acked", "delivered")
WARM = "warm "  # before a kind: what was sent after the warm-up


class Span(NamedTuple):
    """The first and the last time of something, and how many there were at the first."""

    first: int
    last: int
    at_first: int

    def __or__(self, other: "Span") -> "Span":
        first = min(self.first, other.first)
        at_first = sum(span.at_first for span in (self, other) if span.first == first)
        return Span(first, max(self.last, other.last), at_first)


class Throughput(Measurement):
    name = "throughput"
    columns = {  # noqa: RUF012
        "sent": ("t",),
        "outcome": ("outcome", "t", "latency"),
        "delivered": ("t", "latency"),
    }

    def __init__(self, context: Context, knows: None) -> None:
        super().__init__(context, knows)
        self._seconds: dict[str, list[Counted]] = {kind: [] for kind in KINDS}
        self._spans: dict[str, Span] = {}
        self._counts: Counter[str] = Counter()

    def fold(self, table: str, rows: Rows) -> None:
        kind, rows = ("acked", rows.acked) if table == "outcome" else (table, rows)
        if not len(rows):
            return
        self._seconds[kind].append(rows.per_second)
        self._see(kind, rows)
        self._see(WARM + kind, rows.warm)

    def _see(self, what: str, rows: Rows) -> None:
        if len(rows):
            times = rows.in_time["t"]
            span = Span(int(times[0]), int(times[-1]), int(np.searchsorted(times, times[0], side="right")))
            self._spans[what] = span | self._spans[what] if what in self._spans else span
            self._counts[what] += len(rows)

    def partials(self) -> Iterable[tuple[Key, Any]]:
        seconds = {kind: histogram.add_up(parts) for kind, parts in self._seconds.items()}
        yield TOTAL, (seconds, self._spans, self._counts)

    @classmethod
    def reduce(cls, context: Context, knows: None, key: Key, partials: list[Any]) -> Any:
        spans: dict[str, Span] = {}
        for _, some, _ in partials:
            spans |= {kind: span | spans[kind] if kind in spans else span for kind, span in some.items()}
        seconds = {kind: histogram.add_up([seconds[kind] for seconds, *_ in partials]) for kind in KINDS}
        return seconds, spans, sum((counts for *_, counts in partials), Counter())

    @classmethod
    def conclude(cls, context: Context, found: Mapping[Key, Any], findings: Findings) -> None:
        nothing: Any = ({kind: histogram.add_up([]) for kind in KINDS}, {}, Counter())
        seconds, spans, totals = found.get(TOTAL, nothing)
        last = max((int(counted.numbers.max(initial=-1)) for counted in seconds.values()), default=-1)
        counts = {
            kind: dict(zip(counted.numbers.tolist(), counted.counts.tolist(), strict=True))
            for kind, counted in seconds.items()
        }
        series = findings.result["series"]
        series["t"] = list(range(last + 1))
        series["sent"], series["acked"], series["delivered"] = (
            [counts[kind].get(t, 0) for t in series["t"]] for kind in KINDS
        )
        sent, acked, delivered = (spans.get(WARM + kind) for kind in KINDS)
        # Acks are counted over the time of sending and acking; deliveries may come later, in a drain: from the first
        # of them on, which itself took none of that time.
        rates = {
            "acked": _rate(totals[WARM + "acked"], sent | acked if sent and acked else None),
            "delivered": _rate(totals[WARM + "delivered"] - delivered.at_first, delivered) if delivered else None,
        }
        for kind, rate in rates.items():
            findings.result["throughput"][f"{kind}_per_second"] = rate
            findings.result["throughput"][f"{kind}_per_second_peak"] = _peak(counts[kind], rate, context)


def _rate(count: int, span: Span | None) -> float | None:
    return count * SECOND / (span.last - span.first) if span and span.last > span.first else None


def _peak(counts: dict[int, int], rate: float | None, context: Context) -> float | None:
    """Of the seconds after the warm-up; None if it was over too soon for any of them to show one."""
    warm = [count for second, count in counts.items() if second >= context.seconds(context.warm_at)]
    peak = float(max(warm, default=0))
    return peak if rate is not None and peak >= rate else None

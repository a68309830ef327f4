"""Throughput: messages sent, acked and delivered in each second of the trial, and how many a second.

Each second counts all; how many they are a second is counted without those that were sent in a warm-up.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ackworth.model.clock import SECOND
from ackworth.pipeline import histogram
from ackworth.pipeline.context import Context
from ackworth.pipeline.histogram import Counted
from ackworth.pipeline.measurement import TOTAL, Findings, Key, Measurement
from ackworth.pipeline.rows import Rows

KINDS = ("sent", "acked", "delivered")
WARM = "warm "  # before a kind: what was sent after the warm-up


class Span:
    """The first and the last time of something."""

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last

    def __or__(self, other: "Span") -> "Span":
        return Span(min(self.first, other.first), max(self.last, other.last))


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
            span = Span(int(times[0]), int(times[-1]))
            self._spans[what] = span | self._spans.get(what, span)
            self._counts[what] += len(rows)

    def partials(self) -> Iterable[tuple[Key, Any]]:
        seconds = {kind: histogram.add_up(parts) for kind, parts in self._seconds.items()}
        yield TOTAL, (seconds, self._spans, self._counts)

    @classmethod
    def reduce(cls, context: Context, knows: None, key: Key, partials: list[Any]) -> Any:
        spans: dict[str, Span] = {}
        for _, some, _ in partials:
            spans |= {kind: span | spans.get(kind, span) for kind, span in some.items()}
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
        findings.shared["last sent"] = spans["sent"].last if "sent" in spans else None
        # Acks are counted over the time of sending and acking; deliveries may come later, in a drain.
        sent, acked, delivered = (spans.get(WARM + kind) for kind in KINDS)
        for kind, span in (("acked", sent | acked if sent and acked else None), ("delivered", delivered)):
            findings.result["throughput"][f"{kind}_per_second"] = _rate(totals[WARM + kind], span)
            findings.result["throughput"][f"{kind}_per_second_peak"] = _peak(counts[kind], context)


def _rate(count: int, span: Span | None) -> float | None:
    return count * SECOND / (span.last - span.first) if span and span.last > span.first else None


def _peak(counts: dict[int, int], context: Context) -> float | None:
    """Of the seconds after the warm-up."""
    warm = [count for second, count in counts.items() if second >= context.seconds(context.warm_at)]
    return float(max(warm)) if warm else None

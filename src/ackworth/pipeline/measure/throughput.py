"""Throughput: messages sent, acked and delivered in each second of the trial, and how many a second."""

from collections.abc import Iterable, Mapping
from typing import Any

from ackworth.model.clock import SECOND
from ackworth.pipeline import histogram
from ackworth.pipeline.context import Context
from ackworth.pipeline.histogram import Counted
from ackworth.pipeline.measurement import TOTAL, Findings, Key, Measurement
from ackworth.pipeline.rows import Rows

KINDS = ("sent", "acked", "delivered")


class Span:
    """The first and the last time of something."""

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last

    def __or__(self, other: "Span") -> "Span":
        return Span(min(self.first, other.first), max(self.last, other.last))


class Throughput(Measurement):
    name = "throughput"
    columns = {"sent": ("t",), "outcome": ("outcome", "t"), "delivered": ("t",)}  # noqa: RUF012

    def __init__(self, context: Context, knows: None) -> None:
        super().__init__(context, knows)
        self._seconds: dict[str, list[Counted]] = {kind: [] for kind in KINDS}
        self._spans: dict[str, Span] = {}

    def fold(self, table: str, rows: Rows) -> None:
        kind, rows = ("acked", rows.acked) if table == "outcome" else (table, rows)
        if not len(rows):
            return
        self._seconds[kind].append(rows.per_second)
        times = rows.in_time["t"]
        span = Span(int(times[0]), int(times[-1]))
        self._spans[kind] = span | self._spans.get(kind, span)

    def partials(self) -> Iterable[tuple[Key, Any]]:
        yield TOTAL, ({kind: histogram.add_up(parts) for kind, parts in self._seconds.items()}, self._spans)

    @classmethod
    def reduce(cls, context: Context, knows: None, key: Key, partials: list[Any]) -> Any:
        spans: dict[str, Span] = {}
        for _, some in partials:
            spans |= {kind: span | spans.get(kind, span) for kind, span in some.items()}
        return {kind: histogram.add_up([seconds[kind] for seconds, _ in partials]) for kind in KINDS}, spans

    @classmethod
    def conclude(cls, context: Context, found: Mapping[Key, Any], findings: Findings) -> None:
        seconds, spans = found.get(TOTAL, ({kind: histogram.add_up([]) for kind in KINDS}, {}))
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
        acking = spans["sent"] | spans["acked"] if spans.keys() >= {"sent", "acked"} else None
        for kind, span in (("acked", acking), ("delivered", spans.get("delivered"))):
            findings.result["throughput"][f"{kind}_per_second"] = _rate(sum(counts[kind].values()), span)
            findings.result["throughput"][f"{kind}_per_second_peak"] = _peak(counts[kind])


def _rate(count: int, span: Span | None) -> float | None:
    return count * SECOND / (span.last - span.first) if span and span.last > span.first else None


def _peak(counts: dict[int, int]) -> float | None:
    return float(max(counts.values())) if counts else None

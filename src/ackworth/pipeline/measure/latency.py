"""Latencies: from due to ack, from sent to ack, from sent to delivery; for the trial and for each second.

A message that never came back is censored: it counts as slower than any that did. What was sent in a warm-up has none.
Every delivery counts, also one that comes again.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ackworth.model.result import Latency
from ackworth.pipeline import histogram
from ackworth.pipeline.context import Context
from ackworth.pipeline.histogram import Counted
from ackworth.pipeline.ids import Int64s
from ackworth.pipeline.measurement import TOTAL, Findings, Key, Measurement
from ackworth.pipeline.rows import Rows

KINDS = ("due_to_ack", "sent_to_ack", "sent_to_delivery")
DUE_TO_ACK, SENT_TO_ACK, SENT_TO_DELIVERY = range(len(KINDS))

_SECONDS = 60  # of one key


class Latencies(Measurement):
    name = "latency"
    needs = ("account", "throughput")
    columns = {  # noqa: RUF012
        "outcome": ("outcome", "t", "latency", "late"),
        "delivered": ("t", "latency", "flags"),
    }

    def __init__(self, context: Context, knows: None) -> None:
        super().__init__(context, knows)
        # Per kind, the places in the histograms of all seconds, counted chunk by chunk.
        self._counted: defaultdict[int, list[Counted]] = defaultdict(list)
        self._sums: Counter[int] = Counter()
        self._highest: dict[int, int] = {}

    def fold(self, table: str, rows: Rows) -> None:
        if table == "delivered":
            rows = rows.intact.warm.in_time
            self._add((SENT_TO_DELIVERY,), rows, rows["latency"])
            return
        rows = rows.acked.warm.in_time
        if rows.constant("late") == 0:
            self._add((DUE_TO_ACK, SENT_TO_ACK), rows, rows["latency"])
        else:
            self._add((SENT_TO_ACK,), rows, rows["latency"])
            self._add((DUE_TO_ACK,), rows, rows["latency"] + rows["late"])

    def _add(self, kinds: tuple[int, ...], rows: Rows, latencies: Int64s) -> None:
        if not len(rows):
            return
        counted = histogram.tally(latencies, rows.per_second)
        total, highest = int(latencies.sum()), int(latencies.max())
        for kind in kinds:
            self._counted[kind].append(counted)
            self._sums[kind] += total
            self._highest[kind] = max(highest, self._highest.get(kind, highest))

    def partials(self) -> Iterable[tuple[Key, Any]]:
        yield TOTAL, (self._sums, self._highest)
        for kind, parts in self._counted.items():
            counted = histogram.add_up(parts)
            minutes = counted.numbers // (histogram.SIZE * _SECONDS)
            for minute in np.unique(minutes).tolist():
                yield minute * len(KINDS) + kind, Counted(*(column[minutes == minute] for column in counted))

    @classmethod
    def reduce(cls, context: Context, knows: None, key: Key, partials: list[Any]) -> Any:
        if key == TOTAL:
            sums: Counter[int] = Counter()
            highest: dict[int, int] = {}
            for some, highs in partials:
                sums.update(some)
                highest |= {kind: max(high, highest.get(kind, high)) for kind, high in highs.items()}
            return sums, highest
        counted = histogram.add_up(partials)
        seconds = counted.numbers // histogram.SIZE
        places = counted.numbers % histogram.SIZE
        of_second = {
            second: _middling(Counted(places[seconds == second], counted.counts[seconds == second]))
            for second in np.unique(seconds).tolist()
        }
        return histogram.add_up([Counted(places, counted.counts)]), of_second

    @classmethod
    def conclude(cls, context: Context, found: Mapping[Key, Any], findings: Findings) -> None:
        sums, highest = found.get(TOTAL, (Counter(), {}))
        unanswered = findings.shared["censored acks"]
        lost = sum(findings.shared["censored deliveries", group] for group in range(len(findings.groups)))
        for kind, censored in zip(range(len(KINDS)), (unanswered, unanswered, lost), strict=True):
            parts = [found[key] for key in found if key != TOTAL and key % len(KINDS) == kind]
            whole = histogram.add_up([part for part, _ in parts])
            findings.result["latency"][KINDS[kind]] = _latency(whole, censored, sums[kind], highest.get(kind))
            _conclude_seconds(kind, {s: p for _, seconds in parts for s, p in seconds.items()}, findings)


def _middling(seconds: Counted) -> tuple[float | None, float | None]:
    return histogram.percentile(seconds, 5_000), histogram.percentile(seconds, 9_900)


def _latency(whole: Counted, censored: int, total: int, highest: int | None) -> Latency:
    count = int(whole.counts.sum())

    def at(share: int) -> float | None:
        value = histogram.percentile(whole, share, censored)
        return value if value is None or highest is None else min(value, float(highest))

    return {
        "count": count,
        "censored": censored,
        "mean": total / count if count else None,
        "p50": at(5_000),
        "p90": at(9_000),
        "p99": at(9_900),
        "p999": at(9_990),
        "p9999": at(9_999),
        "max": highest,
    }


def _conclude_seconds(kind: int, seconds: dict[int, tuple[Any, Any]], findings: Findings) -> None:
    series = findings.result["series"]
    halves, highs = (
        [seconds.get(t, (None, None))[0] for t in series["t"]],
        [seconds.get(t, (None, None))[1] for t in series["t"]],
    )
    if kind == DUE_TO_ACK:
        series["ack_p50"], series["ack_p99"] = halves, highs
    elif kind == SENT_TO_DELIVERY:
        series["delivery_p50"], series["delivery_p99"] = halves, highs

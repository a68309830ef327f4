"""How often messages were delivered that the consumers refused each time: exactly as often as expected, or not."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ackworth.history.reader import RowGroup
from ackworth.model.outcome import Delivery
from ackworth.pipeline.balance import NAMED
from ackworth.pipeline.context import Context
from ackworth.pipeline.ids import BUCKET_BITS, Int64s
from ackworth.pipeline.measurement import Findings, Key, Measurement, Request, names_of
from ackworth.pipeline.rows import Rows


class Refused(NamedTuple):
    """Messages that were refused, and how often each."""

    places: Int64s
    times: Int64s


class Attempts(Measurement):
    name = "attempts"
    columns = {"delivered": ("group", "producer", "seq", "flags")}  # noqa: RUF012

    @classmethod
    def request(cls, context: Context, findings: Findings, groups: Sequence[RowGroup]) -> Request | None:
        return Request() if (context.trial.plan.get("expect") or {}).get("attempts") else None

    def __init__(self, context: Context, knows: None) -> None:
        super().__init__(context, knows)
        self._found: defaultdict[int, list[Int64s]] = defaultdict(list)  # by group

    def fold(self, table: str, rows: Rows) -> None:
        for group, part in rows.by("group"):
            refused = part.intact.where(part.intact.flagged(Delivery.REFUSED))
            if len(refused):
                self._found[group].append(refused.placed.places)

    def partials(self) -> Iterable[tuple[Key, Any]]:
        by_bucket: defaultdict[Key, dict[int, Refused]] = defaultdict(dict)
        for group, found in self._found.items():
            all_places = Refused(*np.unique(np.concatenate(found), return_counts=True))
            buckets = all_places.places >> BUCKET_BITS
            for bucket in np.unique(buckets).tolist():
                by_bucket[bucket][group] = Refused(*(column[buckets == bucket] for column in all_places))
        yield from by_bucket.items()

    @classmethod
    def reduce(cls, context: Context, knows: None, key: Key, partials: list[dict[int, Refused]]) -> Any:
        """How many messages were refused, and those that were not refused as often as they should be."""
        expected = context.trial.plan["expect"]["attempts"]
        refused, wrong = 0, [np.zeros(0, np.int64)]
        for group in {group for partial in partials for group in partial}:
            places, times = _summed([partial[group] for partial in partials if group in partial])
            refused += len(places)
            wrong.append(places[times != expected])
        return refused, np.concatenate(wrong)

    @classmethod
    def conclude(cls, context: Context, found: Mapping[Key, Any], findings: Findings) -> None:
        wrong = [places for _, places in found.values()]
        findings.shared["refused messages"] = sum(refused for refused, _ in found.values())
        findings.shared["wrong attempts"] = sum(len(places) for places in wrong)
        findings.offenders["attempts"] = names_of(context, [np.unique(places)[:NAMED] for places in wrong])


def _summed(parts: Sequence[Refused]) -> Refused:
    places, where = np.unique(np.concatenate([part.places for part in parts]), return_inverse=True)
    times = np.bincount(where, np.concatenate([part.times for part in parts]), len(places)).astype(np.int64)
    return Refused(places, times)

"""The account: what was sent, what became of it, and which of it reached each group. See `pipeline.balance`."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ackworth.model.outcome import Outcome
from ackworth.pipeline.balance import NAMED, Balance, Kind, balance
from ackworth.pipeline.context import Context
from ackworth.pipeline.ids import NOWHERE, PlaceSet
from ackworth.pipeline.measurement import TOTAL, Findings, Key, Measurement, ids_of, names_of, smallest
from ackworth.pipeline.rows import Rows
from ackworth.pipeline.seen import Came, Seen

_UNSENT = "outcomes of messages that were never sent"


class Accounting(Measurement):
    name = "account"

    @classmethod
    def reads(cls, context: Context) -> Mapping[str, Sequence[str]]:
        choosy = any(group.topics is not None for group in context.trial.groups)
        return {
            "sent": ("producer", "seq", *(("topic",) if choosy else ()), *(("t",) if context.warms_up else ())),
            "outcome": ("producer", "seq", "outcome", "reason"),
            "delivered": ("group", "producer", "topic", "seq", "flags"),
        }

    def __init__(self, context: Context, knows: None) -> None:
        super().__init__(context, knows)
        self._seen: defaultdict[Kind, Seen] = defaultdict(lambda: Seen(context.ids.buckets))
        self._counts: Counter[Kind] = Counter()
        self._strays: list[tuple[int, int]] = []  # deliveries of ids that have no place: certainly phantoms

    def fold(self, table: str, rows: Rows) -> None:
        {"sent": self._sent, "outcome": self._outcome, "delivered": self._delivered}[table](rows)

    def _sent(self, rows: Rows) -> None:
        self._seen["sent", 0].add(rows.places)
        if self.context.warms_up:
            self._seen["sent warm", 0].add(rows.warm.places)
        for number, group in enumerate(self.context.trial.groups):
            if group.topics is not None:
                read = self.context.topics_read(number)[rows["topic"]]
                self._seen["sent to", number].add(rows.places[read])

    def _outcome(self, rows: Rows) -> None:
        self._seen["answered", 0].add(rows.placed.places)
        self._counts[_UNSENT, 0] += len(rows) - len(rows.placed)
        if rows.acked is rows:
            return
        others = rows.where(rows["outcome"] != Outcome.ACKED)
        for outcome, part in others.by("outcome"):
            self._seen["outcome", outcome].add(part.placed.places)
            for reason, some in part.by("reason"):
                self._counts["reason", reason] += len(some)

    def _delivered(self, rows: Rows) -> None:
        for group, part in rows.by("group"):
            placed = part.intact.placed
            self._seen["delivered", group].add(placed.places_by_stream, placed.copies)
            self._counts["delivered", group] += len(part)
            self._counts["placed", group] += len(placed)
            if len(placed) < len(part.intact):
                strays = part.intact.where(part.intact.places == NOWHERE)
                self._counts["stray", group] += len(strays)
                self._strays = smallest(self._strays + ids_of(strays))

    def partials(self) -> Iterable[tuple[Key, Any]]:
        by_bucket: defaultdict[int, dict[Kind, Came]] = defaultdict(dict)
        for kind, seen in self._seen.items():
            for bucket, came in seen.buckets():
                by_bucket[bucket][kind] = came
        yield from by_bucket.items()
        yield TOTAL, (self._counts, self._strays)

    @classmethod
    def reduce(cls, context: Context, knows: None, key: Key, partials: list[Any]) -> Any:
        if key != TOTAL:
            return balance(context, key, _merged(partials))
        counts: Counter[Kind] = Counter()
        for some, _ in partials:
            counts.update(some)
        return counts, smallest(name for _, strays in partials for name in strays)

    @classmethod
    def conclude(cls, context: Context, found: Mapping[Key, Any], findings: Findings) -> None:
        totals, strays = found.get(TOTAL, (Counter(), []))
        buckets = {key: found[key] for key in sorted(found) if key != TOTAL}
        _conclude_sent(context, totals, buckets.values(), findings)
        _conclude_sets(context, buckets, findings)
        for group in range(len(context.trial.groups)):
            _conclude_group(group, totals, buckets.values(), findings)
        _conclude_names(context, buckets.values(), strays, findings)


def _merged(partials: list[dict[Kind, Came]]) -> dict[Kind, Came]:
    merged: dict[Kind, Came] = {}
    for partial in partials:
        for kind, came in partial.items():
            merged[kind] = merged[kind] | came if kind in merged else came
    return merged


def _summed(parts: Iterable[dict[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return total


def _conclude_sent(context: Context, totals: Counter[Kind], buckets: Iterable[Balance], findings: Findings) -> None:
    counts = _summed(bucket.counts for bucket in buckets)
    findings.result["account"] = {
        "sent": counts["sent"],
        "acked": counts["acked"],
        "refused": counts["refused"],
        "unknown": counts["unknown"],
        "unanswered": counts["sent"] - counts["acked"] - counts["refused"] - counts["unknown"],
        "recovered": counts["recovered"],
        "reasons": {
            context.trial.reasons[which] or "no reason given": number
            for (what, which), number in sorted(totals.items())
            if what == "reason"
        },
    }
    findings.shared["censored acks"] = counts["censored"]
    findings.defects.update(_summed(bucket.defects for bucket in buckets))
    findings.defects[_UNSENT] = findings.defects.get(_UNSENT, 0) + totals[_UNSENT, 0]


def _conclude_sets(context: Context, buckets: Mapping[int, Balance], findings: Findings) -> None:
    for what in ("lost", "kept", "again", "phantom"):
        findings.sets[what] = [
            PlaceSet({key: b.groups[number].sets[what] for key, b in buckets.items() if what in b.groups[number].sets})
            for number in range(len(context.trial.groups))
        ]


def _conclude_group(number: int, totals: Counter[Kind], buckets: Iterable[Balance], findings: Findings) -> None:
    counts = _summed(bucket.groups[number].counts for bucket in buckets)
    group = findings.groups[number]
    group["expected"] = counts["expected"]
    group["delivered"] = totals["delivered", number]
    group["distinct"] = counts["distinct"]
    group["lost"] = counts["lost"]
    group["recovered"] = counts["recovered"]
    group["resurrected"] = counts["resurrected"]
    group["phantom"] = counts["phantom"] + totals["stray", number]
    findings.shared["censored deliveries", number] = counts["censored"]
    # Stage 2 must find as many repeats.
    findings.shared["repeats", number] = totals["placed", number] - counts["distinct"] - counts["phantom"]


def _conclude_names(
    context: Context, buckets: Iterable[Balance], strays: list[tuple[int, int]], findings: Findings
) -> None:
    findings.offenders["lost"] = names_of(context, [lost.first(NAMED) for lost in findings.sets["lost"]])
    for what in ("resurrected", "phantom"):
        places = [group.named[what] for bucket in buckets for group in bucket.groups if what in group.named]
        findings.offenders[what] = names_of(context, places)
    findings.offenders["phantom"] += [f"{producer}/{seq}" for producer, seq in strays]

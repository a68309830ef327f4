"""The account: what was sent, what became of it, and which of it reached each group.

Sets of messages are bits, so the account is bit arithmetic, one bucket of places at a time:

    sent = acked + refused + unknown + unanswered      an id with several outcomes counts once, acked last
    expected   acked, and sent to a topic that the group reads
    lost       expected, and never delivered intact
    recovered  unknown or unanswered, and delivered
    resurrected  refused, and delivered
    phantom    delivered intact, and never sent
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ackworth.model.outcome import Outcome
from ackworth.pipeline.context import Context
from ackworth.pipeline.ids import BUCKET, NOWHERE, Bits, Int64s, PlaceSet, compress, count, places_in
from ackworth.pipeline.measurement import NAMED, TOTAL, Findings, Key, Measurement, ids_of, names_of, smallest
from ackworth.pipeline.rows import Rows
from ackworth.pipeline.seen import Came, Seen

Kind = tuple[str, int]  # what is counted, and its outcome or group

_NOBODY = np.zeros(BUCKET // 8, np.uint8)


class GroupBucket(NamedTuple):
    """One bucket's account of one group."""

    counts: dict[str, int]
    sets: dict[str, bytes]  # what later stages look at, compressed; empty ones are left out
    named: dict[str, Int64s]


class Accounting(Measurement):
    name = "account"

    @classmethod
    def reads(cls, context: Context) -> Mapping[str, Sequence[str]]:
        choosy = any(group.topics is not None for group in context.trial.groups)
        return {
            "sent": ("producer", "seq", "topic") if choosy else ("producer", "seq"),
            "outcome": ("producer", "seq", "outcome", "reason"),
            "delivered": ("group", "producer", "seq", "flags"),
        }

    def __init__(self, context: Context, knows: None) -> None:
        super().__init__(context, knows)
        self._seen: defaultdict[Kind, Seen] = defaultdict(lambda: Seen(context.ids.buckets))
        self._counts: Counter[Any] = Counter()
        self._strays: list[tuple[int, int]] = []

    def fold(self, table: str, rows: Rows) -> None:
        {"sent": self._sent, "outcome": self._outcome, "delivered": self._delivered}[table](rows)

    def _sent(self, rows: Rows) -> None:
        self._seen["sent", 0].add(rows.places)
        for number, group in enumerate(self.context.trial.groups):
            if group.topics is not None:
                reads = self.context.topics_read(number)[rows["topic"]]
                self._seen["sent to", number].add(rows.places[reads])

    def _outcome(self, rows: Rows) -> None:
        self._seen["answered", 0].add(rows.placed.places)
        self._counts["outcomes of messages that were never sent"] += len(rows) - len(rows.placed)
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
            self._seen["delivered", group].add(placed.places)
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
        if key == TOTAL:
            counts: Counter[Any] = Counter()
            for some, _ in partials:
                counts.update(some)
            return counts, smallest(name for _, strays in partials for name in strays)
        return _bucket(context, key, _merge(partials))

    @classmethod
    def conclude(cls, context: Context, found: Mapping[Key, Any], findings: Findings) -> None:
        counts, strays = found.get(TOTAL, (Counter(), []))
        buckets = {key: found[key] for key in sorted(found) if key != TOTAL}
        _conclude_sent(context, counts, [sent for sent, _ in buckets.values()], findings)
        _conclude_sets(context, buckets, findings)
        named: dict[str, list[Int64s]] = {"resurrected": [], "phantom": []}
        for group in range(len(context.trial.groups)):
            parts = [groups[group] for _, groups in buckets.values()]
            _conclude_group(group, counts, parts, findings)
            for what, places in named.items():
                places += [part.named[what] for part in parts if what in part.named]
        for what, places in named.items():
            findings.offenders[what] = names_of(context, places)
        in_range = findings.offenders["phantom"]
        findings.offenders["phantom"] = [*in_range, *(f"{p}/{seq}" for p, seq in strays)][:NAMED]


def _merge(partials: list[dict[Kind, Came]]) -> dict[Kind, Came]:
    merged: dict[Kind, Came] = {}
    for partial in partials:
        for kind, came in partial.items():
            merged[kind] = merged[kind] | came if kind in merged else came
    return merged


def _bucket(context: Context, bucket: int, came: dict[Kind, Came]) -> tuple[dict[str, int], list[GroupBucket]]:
    def once(*kind: Any) -> Bits:
        return came[kind].once if kind in came else _NOBODY

    sent = once("sent", 0)
    refused = once("outcome", Outcome.REFUSED) & sent
    unknown = once("outcome", Outcome.UNKNOWN) & sent & ~refused
    acked = once("answered", 0) & sent & ~refused & ~unknown
    open_ = sent & ~acked & ~refused
    groups = []
    for number, group in enumerate(context.trial.groups):
        expected = acked if group.topics is None else acked & once("sent to", number)
        delivered = came.get(("delivered", number), Came(_NOBODY, None))
        groups.append(_group_bucket(bucket, sent, refused, open_, expected, delivered))
    counts = {"sent": count(sent), "acked": count(acked), "refused": count(refused), "unknown": count(unknown)}
    return counts | _defects(came, sent), groups


def _defects(came: dict[Kind, Came], sent: Bits) -> dict[str, int]:
    nothing = Came(_NOBODY, None)
    answered, sends = came.get(("answered", 0), nothing), came.get(("sent", 0), nothing)
    return {
        "messages with several outcomes": 0 if answered.again is None else count(answered.again),
        "messages that were sent twice": 0 if sends.again is None else count(sends.again),
        "outcomes of messages that were never sent": count(answered.once & ~sent),
    }


def _group_bucket(bucket: int, sent: Bits, refused: Bits, open_: Bits, expected: Bits, delivered: Came) -> GroupBucket:
    sets = {
        "lost": expected & ~delivered.once,
        "kept": expected & delivered.once,
        "again": _NOBODY if delivered.again is None else delivered.again,
        "phantom": delivered.once & ~sent,
    }
    resurrected = refused & delivered.once
    counts = {
        "expected": count(expected),
        "distinct": count(delivered.once & sent),
        "lost": count(sets["lost"]),
        "recovered": count(open_ & delivered.once),
        "resurrected": count(resurrected),
        "phantom": count(sets["phantom"]),
    }
    named = {"resurrected": resurrected, "phantom": sets["phantom"]}
    return GroupBucket(
        counts,
        {what: compress(bits) for what, bits in sets.items() if bits.any()},
        {what: places_in(bucket, bits, NAMED) for what, bits in named.items() if bits.any()},
    )


def _conclude_sent(context: Context, totals: Counter[Any], buckets: list[dict[str, int]], findings: Findings) -> None:
    counts: Counter[str] = Counter()
    for bucket in buckets:
        counts.update(bucket)
    answered = counts["acked"] + counts["refused"] + counts["unknown"]
    findings.result["account"] = {
        "sent": counts["sent"],
        "acked": counts["acked"],
        "refused": counts["refused"],
        "unknown": counts["unknown"],
        "unanswered": counts["sent"] - answered,
        "reasons": {
            context.trial.reasons[key[1]] or "no reason given": number
            for key, number in sorted(totals.items(), key=str)
            if key[0] == "reason"
        },
    }
    never = "outcomes of messages that were never sent"
    for defect in ("messages with several outcomes", "messages that were sent twice", never):
        findings.defects[defect] = counts[defect] + (totals[defect] if defect == never else 0)


def _conclude_sets(context: Context, buckets: Mapping[int, Any], findings: Findings) -> None:
    for what in ("lost", "kept", "again", "phantom"):
        findings.sets[what] = [PlaceSet() for _ in context.trial.groups]
        for bucket, (_, groups) in buckets.items():
            for group, part in enumerate(groups):
                if what in part.sets:
                    findings.sets[what][group].buckets[bucket] = part.sets[what]
    findings.offenders["lost"] = names_of(context, [lost.first(NAMED) for lost in findings.sets["lost"]])


def _conclude_group(group: int, totals: Counter[Any], parts: list[GroupBucket], findings: Findings) -> None:
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part.counts)
    strays = totals["stray", group]
    found = findings.groups[group]
    found["expected"] = counts["expected"]
    found["delivered"] = totals["delivered", group]
    found["distinct"] = counts["distinct"]
    found["lost"] = counts["lost"]
    found["recovered"] = counts["recovered"]
    found["resurrected"] = counts["resurrected"]
    found["phantom"] = counts["phantom"] + strays
    placed: list[int] = findings.shared.setdefault("placed", [])
    placed.append(totals["placed", group])

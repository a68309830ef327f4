"""Duplicates and order, second look: all deliveries of the messages that came more than once.

Deliveries of one message to one group, in the order of their times, are a first one and repeats.
A repeat is flagged (the broker said that it may be one), explained (a fault or a worker's death lies
between it and the delivery before it), or unexplained. Where the plan asks for reasons (`duplicates: explained`),
the broker's word alone is none. Only a first delivery can be reordered.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ackworth.history.reader import RowGroup
from ackworth.model.outcome import Delivery
from ackworth.pipeline.balance import NAMED
from ackworth.pipeline.context import Context
from ackworth.pipeline.ids import BUCKET_BITS, Int64s, Mask, PlaceSet, places_in
from ackworth.pipeline.measure.order import Place, Suspect, group_of, reader_key
from ackworth.pipeline.measurement import TOTAL, Findings, Key, Measurement, Request, names_of
from ackworth.pipeline.rows import Rows
from ackworth.pipeline.streams import Streams

# Seqs in which repeats lie are told apart in stretches much shorter than those of a row group.
_STRETCH_BITS = 10


class Knows(NamedTuple):
    again: dict[int, PlaceSet]  # by group: messages that came more than once
    phantom: dict[int, PlaceSet]  # by group: messages that were never sent
    suspects: dict[Place, dict[Key, Suspect]]  # row groups that may hold reordered messages


class Repeats(NamedTuple):
    """Deliveries of messages that came more than once, as columns."""

    group: npt.NDArray[np.int16]
    place: Int64s
    t: Int64s
    redelivered: Mask
    late: Mask

    def take(self, chosen: Mask | Int64s) -> "Repeats":
        return Repeats(
            self.group[chosen], self.place[chosen], self.t[chosen], self.redelivered[chosen], self.late[chosen]
        )


class Duplicates(Measurement):
    name = "duplicates"
    stage = 2
    needs = ("account", "order")
    columns = {"delivered": ("consumer", "group", "producer", "topic", "seq", "t", "flags")}  # noqa: RUF012

    @classmethod
    def request(cls, context: Context, findings: Findings, groups: Sequence[RowGroup]) -> Request | None:
        again = {g: places for g, places in enumerate(findings.sets["again"]) if places.buckets}
        suspects = _settle(findings, findings.shared["suspects"])
        if not again and not suspects:
            return None
        phantom = {g: findings.sets["phantom"][g] for g in again}
        wanted = _holding(context, groups, again.values()) | suspects.keys()
        return Request(Knows(again, phantom, suspects), frozenset(wanted))

    def __init__(self, context: Context, knows: Knows) -> None:
        super().__init__(context, knows)
        self._again = {group: places.flags(context.ids) for group, places in knows.again.items()}
        self._at: Any = None
        self._streams: dict[Key, Streams] = {}
        self._found: list[Repeats] = []
        self._reordered: Counter[int] = Counter()
        self._named = np.zeros(0, np.int64)

    def fold(self, table: str, rows: Rows) -> None:
        if rows.group.place != self._at:
            self._at, self._streams = rows.group.place, {}
        for consumer, group, part in rows.by_reader():
            placed = part.intact.placed
            if len(placed):
                late = self._late(reader_key(consumer, group), placed)
                again = self._again[group][placed.places] if group in self._again else np.zeros(len(placed), np.bool_)
                self._keep(placed, group, late, again)

    def _late(self, key: Key, rows: Rows) -> Mask:
        none = np.zeros(len(rows), np.bool_)
        if key not in self.knows.suspects.get(self._at, {}):
            return none
        if key not in self._streams:
            self._streams[key] = Streams(self.context)
            suspect = self.knows.suspects[self._at][key]
            self._streams[key].carry(suspect.streams, suspect.carried)
        late = self._streams[key].late(rows)
        return none if late is None else late & ~rows.flagged(Delivery.REDELIVERED)

    def _keep(self, rows: Rows, group: int, late: Mask, again: Mask) -> None:
        reordered = late & ~again
        if reordered.any():
            self._reordered[group] += int(np.count_nonzero(reordered))
            self._named = np.unique(np.append(self._named, rows.places[reordered]))[:NAMED]
        if again.any():
            groups = np.full(len(rows), group, np.int16)
            redelivered = rows.flagged(Delivery.REDELIVERED)
            self._found.append(Repeats(groups, rows.places, rows["t"], redelivered, late).take(again))

    def partials(self) -> Iterable[tuple[Key, Any]]:
        yield TOTAL, (self._reordered, self._named)
        if self._found:
            found = Repeats(*(np.concatenate(columns) for columns in zip(*self._found, strict=True)))
            order = np.argsort(found.place)
            buckets, begins = np.unique(found.place[order] >> BUCKET_BITS, return_index=True)
            for bucket, chosen in zip(buckets.tolist(), np.split(order, begins[1:]), strict=True):
                yield bucket, found.take(chosen)

    @classmethod
    def reduce(cls, context: Context, knows: Knows, key: Key, partials: list[Any]) -> Any:
        if key != TOTAL:
            found = Repeats(*(np.concatenate(columns) for columns in zip(*partials, strict=True)))
            return _classify(context, knows, key, found)
        reordered: Counter[int] = Counter()
        for some, _ in partials:
            reordered.update(some)
        return reordered, np.unique(np.concatenate([named for _, named in partials]))[:NAMED]

    @classmethod
    def conclude(cls, context: Context, found: Mapping[Key, Any], findings: Findings) -> None:
        reordered, late_named = found.get(TOTAL, (Counter(), np.zeros(0, np.int64)))
        settled = findings.shared["settled"]
        buckets = [found[key] for key in found if key != TOTAL]
        counts: Counter[Any] = Counter()
        for some, *_ in buckets:
            counts.update(some)
        for number, group in enumerate(findings.groups):
            split = {kind: counts[kind, number] for kind in ("flagged", "explained", "unexplained")}
            group["duplicates"] = {"extra": sum(split.values()), **split}  # type: ignore[typeddict-item]
            group["reordered"] = sum(len(late) for late in settled[number]) + (
                reordered[number] + counts["reordered", number]
            )
            group["phantom"] += counts["phantom", number]
            found_repeats = sum(split.values()) + counts["phantom", number]
            if found_repeats != findings.shared["repeats", number]:
                raise AssertionError(f"{found_repeats} repeats found, {findings.shared['repeats', number]} counted")
        findings.offenders["duplicates"] = names_of(context, [unexplained for _, unexplained, _ in buckets])
        findings.offenders["reordered"] = names_of(
            context,
            [late_named, *(late for _, _, late in buckets), *(late for some in settled.values() for late in some)],
        )


def _settle(findings: Findings, suspects: dict[Place, dict[Key, Suspect]]) -> dict[Place, dict[Key, Suspect]]:
    """Take from the suspects what is clear: late messages that came only once are reordered. The rest is left."""
    settled: defaultdict[int, list[Int64s]] = defaultdict(list)
    left: dict[Place, dict[Key, Suspect]] = {}
    for place, readers in suspects.items():
        for key, suspect in readers.items():
            again = findings.sets["again"][group_of(key)]
            if suspect.late is None or len(suspect.streams) or again.holds(suspect.late).any():
                left.setdefault(place, {})[key] = suspect
            else:
                settled[group_of(key)].append(suspect.late)
    findings.shared["settled"] = settled
    return left


def _holding(context: Context, groups: Sequence[RowGroup], sets: Iterable[PlaceSet]) -> set[Any]:
    """The row groups that may hold one of these messages. Deliveries of all producers are mixed: seqs decide."""
    ids = context.ids
    held = np.zeros((max(ids.counts, default=0) >> _STRETCH_BITS) + 1, np.bool_)
    for places in sets:
        for bucket in places.buckets:
            found = places_in(bucket, places.bits(bucket))
            held[(found - ids.starts[ids.producers_of(found)]) >> _STRETCH_BITS] = True
    wanted = set()
    for group in groups:
        if group.table == "delivered":
            low, high = (max(0, seq) >> _STRETCH_BITS for seq in group.bounds["seq"])
            if held[low : high + 1].any():
                wanted.add(group.place)
    return wanted


def _classify(context: Context, knows: Knows, bucket: int, found: Repeats) -> tuple[Counter[Any], Int64s, Int64s]:
    found = found.take(np.lexsort((found.late, found.redelivered, found.t, found.place, found.group)))
    first = np.ones(len(found.t), np.bool_)
    first[1:] = (found.place[1:] != found.place[:-1]) | (found.group[1:] != found.group[:-1])
    phantom = np.zeros(len(first), np.bool_)
    for group, places in knows.phantom.items():
        phantom |= (found.group == group) & np.isin(found.place, places_in(bucket, places.bits(bucket)))
    between = np.zeros(len(first), np.bool_)
    between[1:] = _marked_between(context, found.t[:-1], found.t[1:])
    repeat = ~first & ~phantom
    excused = between | (found.redelivered & (not _asks_for_reasons(context)))
    kinds = {
        "phantom": ~first & phantom,
        "flagged": repeat & excused & found.redelivered,
        "explained": repeat & excused & ~found.redelivered,
        "unexplained": repeat & ~excused,
        "reordered": first & found.late,
    }
    counts: Counter[Any] = Counter()
    for kind, mask in kinds.items():
        for group, number in zip(*np.unique(found.group[mask], return_counts=True), strict=True):
            counts[kind, int(group)] = int(number)
    unexplained, late = (np.unique(found.place[kinds[kind]])[:NAMED] for kind in ("unexplained", "reordered"))
    return counts, unexplained, late


def _asks_for_reasons(context: Context) -> bool:
    return (context.trial.plan.get("expect") or {}).get("duplicates") == "explained"


def _marked_between(context: Context, begins: Int64s, ends: Int64s) -> Mask:
    """Whether a fault or a worker's death overlaps each span of time."""
    marks = context.marked("fault", "worker-died")
    if not marks:
        return np.zeros(len(begins), np.bool_)
    mark_begins = np.array([mark.t_begin for mark in marks])
    latest_end = np.maximum.accumulate([mark.t_end for mark in marks])
    begun = np.searchsorted(mark_begins, ends, side="right")
    return (begun > 0) & (latest_end[begun - 1] >= begins)

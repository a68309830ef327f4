"""Losses, placed: which ranges, of how many topics, at which end of what was acked, before which fault."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ackworth.history.reader import RowGroup
from ackworth.model.clock import SECOND
from ackworth.model.result import Loss
from ackworth.pipeline.context import Context, Mark
from ackworth.pipeline.ids import BUCKET, BUCKET_BITS, NOWHERE, Int64s, PlaceSet, places_in, unpack
from ackworth.pipeline.measurement import TOTAL, Findings, Key, Measurement, Request
from ackworth.pipeline.rows import Rows

_RANGES = 100  # so many are listed
_NEVER = np.iinfo(np.int64).max


class Seen(NamedTuple):
    """What the lost messages of a group were: when acked, when sent, of which topics."""

    first_ack: Int64s  # by the fault that followed the ack; the last is for those that none followed
    last_ack: Int64s
    last_sent: int
    topics: npt.NDArray[np.bool_]

    def __or__(self, other: "Seen") -> "Seen":
        return Seen(
            np.minimum(self.first_ack, other.first_ack),
            np.maximum(self.last_ack, other.last_ack),
            max(self.last_sent, other.last_sent),
            self.topics | other.topics,
        )

    @classmethod
    def nothing(cls, context: Context) -> "Seen":
        faults = len(context.back_at)
        topics = np.zeros(len(context.trial.topics), np.bool_)
        return cls(np.full(faults + 1, _NEVER), np.full(faults + 1, -1), -1, topics)


class Losses(Measurement):
    name = "losses"
    stage = 2
    needs = ("account", "recovery")
    columns = {"sent": ("producer", "seq", "topic", "t"), "outcome": ("producer", "seq", "outcome", "t")}  # noqa: RUF012

    @classmethod
    def request(cls, context: Context, findings: Findings, groups: Sequence[RowGroup]) -> Request | None:
        lost = {number: places for number, places in enumerate(findings.sets["lost"]) if places.buckets}
        if not lost:
            return None
        held = np.zeros(context.ids.buckets, np.bool_)
        for places in lost.values():
            held[list(places.buckets)] = True
        return Request(lost, frozenset(g.place for g in groups if _may_hold(context, g, held)))

    def __init__(self, context: Context, knows: dict[int, PlaceSet]) -> None:
        super().__init__(context, knows)
        self._lost = {group: places.flags(context.ids) for group, places in knows.items()}
        self._seen = {group: Seen.nothing(context) for group in knows}
        # The first fault that an ack came before is the first with which the highest of these reaches it.
        self._faults = np.maximum.accumulate(context.back_at)

    def fold(self, table: str, rows: Rows) -> None:
        rows = rows.acked.placed if table == "outcome" else rows
        for group, lost in self._lost.items():
            some = rows.where(lost[rows.places])
            if len(some):
                self._seen[group] |= self._look(table, some)

    def _look(self, table: str, rows: Rows) -> Seen:
        seen = Seen.nothing(self.context)
        if table == "sent":
            seen.topics[rows["topic"]] = True
            return seen._replace(last_sent=int(rows["t"].max()))
        followed_by = np.searchsorted(self._faults, rows["t"])
        np.minimum.at(seen.first_ack, followed_by, rows["t"])
        np.maximum.at(seen.last_ack, followed_by, rows["t"])
        return seen

    def partials(self) -> Iterable[tuple[Key, Any]]:
        yield TOTAL, self._seen

    @classmethod
    def reduce(cls, context: Context, knows: Any, key: Key, partials: list[dict[int, Seen]]) -> dict[int, Seen]:
        merged = dict(partials[0])
        for partial in partials[1:]:
            merged = {group: merged[group] | partial[group] for group in merged}
        return merged

    @classmethod
    def conclude(cls, context: Context, found: Mapping[Key, Any], findings: Findings) -> None:
        seen_lost = found.get(TOTAL, {})
        findings.shared["last lost sent"] = max((seen.last_sent for seen in seen_lost.values()), default=-1)
        for group, seen in seen_lost.items():
            findings.result["losses"].append(_loss(context, findings, group, seen))


def _may_hold(context: Context, group: RowGroup, held: npt.NDArray[np.bool_]) -> bool:
    """Whether places of the row group are in one of the buckets."""
    if group.table not in Losses.columns:
        return False
    low, high = (
        int(context.ids.starts[producer]) + max(0, seq)
        for producer, seq in zip(group.bounds["producer"], group.bounds["seq"], strict=True)
    )
    return bool(held[low >> BUCKET_BITS : (high >> BUCKET_BITS) + 1].any())


def _loss(context: Context, findings: Findings, group: int, seen: Seen) -> Loss:
    lost, kept = findings.sets["lost"][group], findings.sets["kept"][group]
    reach: Int64s = findings.shared["reach"]
    ranges = _ranges(context, lost, Behind.of(context, kept, reach))
    names = context.ids.names(np.array([ranges.listed[0][0], ranges.last]))
    faults = context.marked("fault")
    followed_by = np.flatnonzero(seen.last_ack >= 0)
    fault = None if followed_by[-1] == len(faults) else int(followed_by[-1])
    return {
        "group": context.trial.groups[group].name,
        "count": findings.groups[group]["lost"],
        "first": names[0],
        "last": names[1],
        "ranges": [_listed(context, first, last) for first, last in ranges.listed],
        "ranges_total": ranges.total,
        "holes": ranges.holes,
        "sent_by": list(context.ids.counts),
        "place": _place(context, lost, kept, None if fault is None else reach[fault]),
        "topics": int(seen.topics.sum()),
        "fault": None if fault is None else faults[fault].name,
        "seconds_before_fault": None if fault is None else _before(faults, followed_by, seen),
    }


def _before(faults: Sequence[Mark], followed_by: Int64s, seen: Seen) -> list[float]:
    """The nearest and the farthest, each before its own fault. An ack that was under way is read after it: 0."""
    ends = np.array([fault.t_end for fault in faults])[followed_by]
    nearest, farthest = (np.maximum(ends - acks[followed_by], 0) for acks in (seen.last_ack, seen.first_ack))
    return [int(nearest.min()) / SECOND, int(farthest.max()) / SECOND]


class Behind(NamedTuple):
    """By fault and producer: how far it had got, and the last that was kept of it. The last row is that of the end."""

    reach: Int64s
    last_kept: Int64s

    @classmethod
    def of(cls, context: Context, kept: PlaceSet, reach: Int64s) -> "Behind":
        end = np.full((1, context.trial.producers), context.ids.total)
        reach = np.maximum.accumulate(np.concatenate([reach, end]))
        last_kept = np.full(reach.shape, NOWHERE)
        for producer, first, flags in _segments(context, kept):
            places = np.append(NOWHERE, np.flatnonzero(flags) + first)
            found = places[np.searchsorted(places, reach[:, producer], side="right") - 1]
            last_kept[:, producer] = np.maximum(last_kept[:, producer], found)
        return cls(reach, last_kept)

    def holes(self, context: Context, begins: Int64s) -> int:
        """How many of the ranges that begin there have something kept behind them, of before the same fault."""
        producers = context.ids.producers_of(begins)
        fault = np.argmax(self.reach[:, producers] >= begins, axis=0)
        return int(np.count_nonzero(self.last_kept[fault, producers] > begins))


class Ranges(NamedTuple):
    """Lost messages as runs of consecutive seqs."""

    listed: list[tuple[int, int]]  # first and last place of the first of them
    total: int
    holes: int
    last: int  # the last place of all


def _ranges(context: Context, lost: PlaceSet, behind: Behind) -> Ranges:
    firsts: list[Int64s] = []
    lasts: list[Int64s] = []
    total, holes, last = 0, 0, -2
    for bucket in sorted(lost.buckets):
        places = places_in(bucket, lost.bits(bucket))
        begins = np.append(places[:1] != last + 1, places[1:] != places[:-1] + 1) | np.isin(places, context.ids.starts)
        # A run's last place is the one before the next run's first; that may lie in the bucket before.
        lasts.append(np.append(last, places[:-1])[begins])
        firsts.append(places[begins])
        total, last = total + len(firsts[-1]), int(places[-1])
        holes += behind.holes(context, firsts[-1])
        if total > 2 * _RANGES and len(firsts) > 1:
            firsts, lasts = [np.concatenate(firsts)[: _RANGES + 1]], [np.concatenate(lasts)[: _RANGES + 1]]
    starts, ends = np.concatenate(firsts), np.append(np.concatenate(lasts)[1:], last)
    return Ranges(list(zip(starts.tolist()[:_RANGES], ends.tolist()[:_RANGES], strict=True)), total, holes, last)


def _listed(context: Context, first: int, last: int) -> list[int]:
    producer = int(context.ids.producers_of(np.array([first]))[0])
    start = int(context.ids.starts[producer])
    return [producer, first - start, last - start]


def _place(context: Context, lost: PlaceSet, kept: PlaceSet, reach: Int64s | None) -> str:
    """Where the losses lie among what each producer had acked by the fault, in one word."""
    ends = _ends(context, lost)
    kept_at: dict[int, set[str]] = {producer: set() for producer in ends}
    for producer, first, flags in _segments(context, kept):
        if producer in ends:
            low, high = ends[producer][0] - first, ends[producer][1] - first
            until = len(flags) if reach is None else max(0, int(reach[producer]) + 1 - first)
            parts = {"before": flags[: max(0, low)], "within": flags[max(0, low) : max(0, high)]}
            parts["after"] = flags[max(0, high) : until]
            kept_at[producer] |= {where for where, part in parts.items() if part.any()}
    words = {_word(where) for where in kept_at.values()}
    # A producer that lost everything fits any picture that the others show.
    words = words - {"all"} or words
    return words.pop() if len(words) == 1 else "scattered"


def _word(kept: set[str]) -> str:
    if "within" in kept:
        return "scattered"
    return {(): "all", ("after",): "prefix", ("before",): "tail"}.get(tuple(sorted(kept)), "middle")


def _ends(context: Context, lost: PlaceSet) -> dict[int, tuple[int, int]]:
    """Each producer's first and last lost place."""
    ends: dict[int, tuple[int, int]] = {}
    for producer, first, flags in _segments(context, lost):
        places = np.flatnonzero(flags) + first
        if len(places):
            ends[producer] = (ends.get(producer, (int(places[0]), 0))[0], int(places[-1]))
    return ends


def _segments(context: Context, places: PlaceSet) -> Iterator[tuple[int, int, npt.NDArray[np.bool_]]]:
    """(producer, first place, flags) of the stretches that belong to one producer, in order."""
    starts = context.ids.starts
    for bucket in sorted(places.buckets):
        low, high = bucket * BUCKET, min((bucket + 1) * BUCKET, context.ids.total)
        flags = unpack(places.bits(bucket))
        producers = np.unique(context.ids.producers_of(np.append(low, starts[(starts > low) & (starts < high)])))
        for producer in producers.tolist():
            first, end = max(low, int(starts[producer])), min(high, int(starts[producer + 1]))
            yield producer, first, flags[first - low : end - low]

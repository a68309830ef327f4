"""Order, first look: which deliveries come after a later message of their stream?

Only the first delivery of a message can be reordered, and which one is first is known only when all
repeats are: see measure.duplicates. Here are found, for each row group, the late deliveries that it shows by
itself, and whether its streams begin below where earlier row groups had got to. Either makes it a suspect.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ackworth.model.outcome import Delivery
from ackworth.pipeline.context import Context
from ackworth.pipeline.ids import Int64s
from ackworth.pipeline.measurement import Findings, Key, Measurement
from ackworth.pipeline.rows import Rows
from ackworth.pipeline.streams import Streams, carried_into

# So many late deliveries of a row group are remembered; of more only that they are many.
_FEW = 4096

Place = tuple[str, str, int, int]  # of a row group


class Suspect(NamedTuple):
    """A row group with late deliveries."""

    streams: Int64s  # those that begin below where they had got to
    carried: Int64s  # where that was: the highest seq + 1
    late: Int64s | None  # the places of messages that are late in any case; None if they are many


def reader_key(consumer: int, group: int) -> Key:
    return consumer << 16 | group


def group_of(key: Key) -> int:
    return key & 0xFFFF


class Order(Measurement):
    name = "order"
    columns = {"delivered": ("consumer", "group", "producer", "topic", "seq", "flags")}  # noqa: RUF012

    def __init__(self, context: Context, knows: None) -> None:
        super().__init__(context, knows)
        self._place: Place | None = None
        self._streams: dict[Key, Streams] = {}
        self._late: dict[Key, list[Int64s]] = {}
        self._done: list[tuple[Key, Any]] = []

    def fold(self, table: str, rows: Rows) -> None:
        if rows.group.place != self._place:
            self._finish()
            self._place = rows.group.place
        for consumer, group, part in rows.by_reader():
            placed = part.intact.placed
            if len(placed):
                self._follow(reader_key(consumer, group), placed)

    def _follow(self, key: Key, rows: Rows) -> None:
        if key not in self._streams:
            self._streams[key], self._late[key] = Streams(self.context), []
        late = self._streams[key].late(rows)
        if late is not None:
            late &= ~rows.flagged(Delivery.REDELIVERED)
            self._late[key].append(rows.places[late])

    def _finish(self) -> None:
        for key, streams in self._streams.items():
            late = np.concatenate([np.zeros(0, np.int64), *self._late[key]])
            self._done.append((key, (self._place, late if len(late) <= _FEW else None, streams.summary())))
        self._streams, self._late = {}, {}

    def partials(self) -> Iterable[tuple[Key, Any]]:
        self._finish()
        return self._done

    @classmethod
    def reduce(cls, context: Context, knows: None, key: Key, partials: list[Any]) -> dict[Place, Suspect]:
        partials.sort(key=lambda partial: partial[0])
        streams, firsts, highests = (np.concatenate([summary[i] for *_, summary in partials]) for i in range(3))
        carried = carried_into(streams, highests)
        below = firsts < carried
        suspects: dict[Place, Suspect] = {}
        end = 0
        for place, late, summary in partials:
            part, end = slice(end, end + len(summary[0])), end + len(summary[0])
            if below[part].any() or late is None or len(late):
                suspects[place] = Suspect(streams[part][below[part]], carried[part][below[part]], late)
        return suspects

    @classmethod
    def conclude(cls, context: Context, found: Mapping[Key, Any], findings: Findings) -> None:
        suspects: dict[Place, dict[Key, Suspect]] = {}
        for key, places in found.items():
            for place, suspect in places.items():
                suspects.setdefault(place, {})[key] = suspect
        findings.shared["suspects"] = suspects

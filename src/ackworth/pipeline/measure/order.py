"""Order, first look: is any stream of deliveries out of order at all, within a row group or across its seams?

Where it is, stage 2 (duplicates) looks again, because only the first delivery of a message can be
reordered, and which one is first is known only when all repeats are.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ackworth.model.outcome import Delivery
from ackworth.pipeline.context import Context
from ackworth.pipeline.ids import Int64s
from ackworth.pipeline.measurement import Findings, Key, Measurement
from ackworth.pipeline.rows import Rows
from ackworth.pipeline.streams import Streams, carried_into

Place = tuple[str, str, int, int]
Carry = tuple[Int64s, Int64s]  # streams, and the highest seq + 1 of each before the row group


def reader_key(consumer: int, group: int) -> Key:
    return consumer << 16 | group


class Order(Measurement):
    name = "order"
    columns = {"delivered": ("consumer", "group", "producer", "topic", "seq", "flags")}  # noqa: RUF012

    def __init__(self, context: Context, knows: None) -> None:
        super().__init__(context, knows)
        self._place: Place | None = None
        self._streams: dict[Key, Streams] = {}
        self._late: dict[Key, bool] = {}
        self._done: list[tuple[Key, Any]] = []

    def fold(self, table: str, rows: Rows) -> None:
        if rows.group.place != self._place:
            self._finish()
            self._place = rows.group.place
        for consumer, group, part in rows.by_reader():
            placed = part.intact.placed
            if not len(placed):
                continue
            key = reader_key(consumer, group)
            if key not in self._streams:
                self._streams[key] = Streams(self.context)
            late = self._streams[key].late(placed)
            if late is not None and (late & ~placed.flagged(Delivery.REDELIVERED)).any():
                self._late[key] = True

    def _finish(self) -> None:
        for key, streams in self._streams.items():
            self._done.append((key, (self._place, key in self._late, streams.summary())))
        self._streams, self._late = {}, {}

    def partials(self) -> Iterable[tuple[Key, Any]]:
        self._finish()
        return self._done

    @classmethod
    def reduce(cls, context: Context, knows: None, key: Key, partials: list[Any]) -> dict[Place, Carry]:
        """The row groups that need a second look, each with what is carried into it."""
        partials.sort(key=lambda partial: partial[0])
        sizes = [len(summary[0]) for _, _, summary in partials]
        streams, firsts, highests = (np.concatenate([p[2][i] for p in partials]) for i in range(3))
        carried = carried_into(streams, highests)
        broken = firsts < carried
        found: dict[Place, Carry] = {}
        end = 0
        for (place, late, _), size in zip(partials, sizes, strict=True):
            part, end = slice(end, end + size), end + size
            if late or broken[part].any():
                found[place] = (streams[part][broken[part]], carried[part][broken[part]])
        return found

    @classmethod
    def conclude(cls, context: Context, found: Mapping[Key, Any], findings: Findings) -> None:
        suspects: dict[Place, dict[Key, Carry]] = {}
        for key, places in found.items():
            for place, carry in places.items():
                suspects.setdefault(place, {})[key] = carry
        findings.shared["suspects"] = suspects

"""Recovery: how long after each fault the first ack and the first delivery came, and when the node was ready.

What was under way when the fault struck, and was only read afterwards, is no recovery: see `Context.back_at`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ackworth.model.clock import SECOND
from ackworth.pipeline.context import Context, Mark
from ackworth.pipeline.ids import NOWHERE
from ackworth.pipeline.measurement import TOTAL, Findings, Key, Measurement, Request
from ackworth.pipeline.rows import Rows

_NEVER = np.iinfo(np.int64).max


class Recovery(Measurement):
    name = "recovery"
    columns = {"sent": ("t",), "outcome": ("producer", "seq", "outcome", "t"), "delivered": ("t",)}  # noqa: RUF012

    @classmethod
    def request(cls, context: Context, findings: Findings, groups: Any) -> Request | None:
        return Request() if len(context.back_at) else None

    def __init__(self, context: Context, knows: None) -> None:
        super().__init__(context, knows)
        faults = len(context.back_at)
        self._first = {table: np.full(faults, _NEVER) for table in self.columns}
        # How far each producer had got: its highest place that was acked by then.
        self._reach = np.full((faults, context.trial.producers), NOWHERE)

    def fold(self, table: str, rows: Rows) -> None:
        rows = (rows.acked if table == "outcome" else rows).in_time
        if not len(rows):
            return
        times, back_at = rows["t"], self.context.back_at
        after = np.searchsorted(times, back_at)
        first = np.where(after < len(times), times[after - (after == len(times))], _NEVER)
        self._first[table] = np.minimum(self._first[table], first)
        if table == "outcome":
            for producer, part in rows.by("producer"):
                by_then = np.searchsorted(part["t"], back_at, side="right")
                reached = {n: part.places[:n].max(initial=NOWHERE) for n in set(by_then.tolist())}
                self._reach[:, producer] = np.maximum(self._reach[:, producer], [reached[n] for n in by_then.tolist()])

    def partials(self) -> Iterable[tuple[Key, Any]]:
        yield TOTAL, (self._first, self._reach)

    @classmethod
    def reduce(cls, context: Context, knows: None, key: Key, partials: list[Any]) -> Any:
        first = {table: np.min([f[table] for f, _ in partials], axis=0) for table in partials[0][0]}
        return first, np.max([reach for _, reach in partials], axis=0)

    @classmethod
    def conclude(cls, context: Context, found: Mapping[Key, Any], findings: Findings) -> None:
        faults = context.marked("fault")
        never = np.full(len(faults), _NEVER)
        nowhere = np.full((len(faults), context.trial.producers), NOWHERE)
        first, reach = found.get(TOTAL, (dict.fromkeys(cls.columns, never), nowhere))
        findings.shared["reach"] = reach
        for number, fault in enumerate(faults):
            ready, refused, repaired = (context.after(fault, what) for what in ("ready", "refused", "repaired"))
            findings.result["faults"].append(
                {
                    "name": fault.name,
                    "node": fault.node,
                    "begin": context.seconds(fault.t_begin),
                    "end": context.seconds(fault.t_end),
                    "ready": None if ready is None else context.seconds(ready.t_end),
                    "asked": bool(first["sent"][number] != _NEVER),
                    "first_ack": _after(fault, int(first["outcome"][number])),
                    "first_delivery": _after(fault, int(first["delivered"][number])),
                    "refused": None if refused is None else refused.detail["reason"],
                    "repaired": None if repaired is None else repaired.detail["said"],
                    "detail": fault.detail,
                }
            )
        findings.result["phases"] = [
            {"name": mark.name, "begin": context.seconds(mark.t_begin), "end": context.seconds(mark.t_end)}
            for mark in context.marked("phase")
        ]


def _after(fault: Mark, t: int) -> float | None:
    return None if t == _NEVER else (t - fault.t_begin) / SECOND

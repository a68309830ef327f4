"""What every task knows: the trial, what happened to it, and which ids were sent."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ackworth.history.meta import Trial
from ackworth.pipeline.ids import Ids, Int64s

CONSUMER = "consumer"  # as what a fault befell

_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Mark:
    what: str
    name: str
    node: str
    t_begin: int
    t_end: int
    detail: dict[str, Any]

    @property
    def of_the_broker(self) -> bool:
        """Of a fault: whether it befell the broker, and not a consumer."""
        return self.detail.get("of") != CONSUMER

    @property
    def whole(self) -> bool:
        """Of a fault: whether it befell all nodes at once."""
        return bool(self.detail.get("whole", True))


@dataclass(frozen=True)
class Context:
    trial: Trial
    marks: tuple[Mark, ...]  # in the order of their beginning
    ids: Ids

    def marked(self, *what: str) -> tuple[Mark, ...]:
        return tuple(mark for mark in self.marks if mark.what in what)

    @cached_property
    def back_at(self) -> Int64s:
        """For each fault, from when on what comes may come from a broker that is over it.

        Until a broker that was struck as a whole is mended, only what was under way already can come. One that is not
        ours may mend itself.
        """
        return np.array([self._back_at(fault) for fault in self.marked("fault")], np.int64)

    def _back_at(self, fault: Mark) -> int:
        struck = fault.whole and fault.of_the_broker and not self.trial.broker.get("attached")
        ready = self.after(fault, "ready") if struck else None
        return fault.t_end if ready is None or ready.t_begin == ready.t_end else max(fault.t_end, ready.t_begin)

    def over_at(self, fault: Mark) -> int:
        """When the node answered again; if that is not on record, when the strike was complete."""
        ready = self.after(fault, "ready")
        return fault.t_end if ready is None else max(fault.t_end, ready.t_end)

    def after(self, fault: Mark, what: str) -> Mark | None:
        """The first mark of a kind on the fault's node, before anything else befell it."""
        until = min((m.t_begin for m in self.marked("fault") if _later(m, fault)), default=_NEVER)
        marks = (m for m in self.marked(what) if m.node == fault.node and fault.t_begin <= m.t_begin < until)
        return min(marks, key=lambda mark: mark.t_end, default=None)

    @cached_property
    def warm_at(self) -> int:
        """When the warm-up was over, if there was one: what was sent before is not measured."""
        warm_ups = (mark.t_end for mark in self.marked("phase") if mark.detail.get("warm_up"))
        return max(warm_ups, default=self.trial.t_zero)

    @property
    def warms_up(self) -> bool:
        return self.warm_at > self.trial.t_zero

    def seconds(self, t: int) -> float:
        """A time of the clock as seconds of the trial."""
        return (t - self.trial.t_zero) / 1e9

    def topics_read(self, group: int) -> npt.NDArray[np.bool_]:
        """For each topic, whether the group reads it."""
        topics = self.trial.groups[group].topics
        reads = np.ones(len(self.trial.topics), np.bool_)
        if topics is not None:
            reads[:] = False
            reads[list(topics)] = True
        return reads


def _later(mark: Mark, fault: Mark) -> bool:
    return mark.node == fault.node and mark.t_begin > fault.t_begin

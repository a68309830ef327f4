"""What every task knows: the trial, what happened to it, and which ids were sent."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ackworth.history.meta import Trial
from ackworth.pipeline.ids import Ids, Int64s


@dataclass(frozen=True)
class Mark:
    what: str
    name: str
    node: str
    t_begin: int
    t_end: int
    detail: dict[str, Any]


@dataclass(frozen=True)
class Context:
    trial: Trial
    marks: tuple[Mark, ...]  # in the order of their beginning
    ids: Ids

    def marked(self, *what: str) -> tuple[Mark, ...]:
        return tuple(mark for mark in self.marks if mark.what in what)

    @cached_property
    def fault_ends(self) -> Int64s:
        return np.array([mark.t_end for mark in self.marked("fault")], np.int64)

    @cached_property
    def warm_at(self) -> int:
        """When the warm-up was over, if there was one: what was sent before is not measured."""
        warm_ups = (mark.t_end for mark in self.marked("phase") if mark.detail.get("warm_up"))
        return max(warm_ups, default=self.trial.t_zero)

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

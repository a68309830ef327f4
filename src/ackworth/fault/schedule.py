"""When faults strike: pure, driven by the progress that it is told.

A fault waits for its first moment, then for a random time up to `within`, strikes, and with `every`
strikes again so much later. All random numbers come from the seed.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from ackworth.plan.model import FaultPlan, Moment, Workload


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far the load is."""

    seconds: float  # since it began
    sent: int
    acked_per_second: float


class Schedule:
    def __init__(self, faults: Sequence[FaultPlan], workload: Workload, seed: int) -> None:
        self._waiting = [_Waiting(fault, random.Random(f"{seed}/{i}")) for i, fault in enumerate(faults)]
        self._workload = workload

    def due(self, progress: Progress) -> FaultPlan | None:
        """A fault that must strike now; each strike is given once."""
        for waiting in self._waiting:
            if waiting.strikes_now(progress, self._workload):
                return waiting.fault
        return None

    def outstanding(self) -> list[FaultPlan]:
        """Faults that have not struck as often as they were to."""
        return [waiting.fault for waiting in self._waiting if waiting.left]


class _Waiting:
    def __init__(self, fault: FaultPlan, chance: random.Random) -> None:
        self.fault = fault
        self.left = fault.times or 1
        self._chance = chance
        self._planned: float | None = None  # the strike without its random shift
        self._at: float | None = None  # the strike

    def strikes_now(self, progress: Progress, workload: Workload) -> bool:
        if not self.left:
            return False
        if self._planned is None and _reached(self.fault.at, progress, workload):
            self._plan(progress.seconds if self.fault.at.seconds is None else self.fault.at.seconds)
        if self._at is None or progress.seconds < self._at:
            return False
        self.left -= 1
        assert self._planned is not None
        self._plan(self._planned + (self.fault.every or 0))
        return True

    def _plan(self, seconds: float) -> None:
        self._planned = seconds
        self._at = seconds + self._chance.uniform(0, self.fault.within)


def _reached(moment: Moment, progress: Progress, workload: Workload) -> bool:
    if moment.seconds is not None:
        return True  # known beforehand: plan it at once
    if moment.messages is not None:
        return progress.sent >= moment.messages
    if moment.rate is not None:
        return progress.acked_per_second >= moment.rate
    assert moment.share is not None
    if workload.messages is not None:
        return progress.sent >= moment.share * workload.messages
    return progress.seconds >= moment.share * sum(phase.duration or 0 for phase in workload.phases)

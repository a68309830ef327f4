"""When a producer's next messages are due.

Closed loop: at once, as far as the window allows. Open loop: message k of a phase is due at
start + k / rate, whatever became of the earlier ones; a late generator sends late and says by how much.

To send one message costs as much as to send several. So those that are due within a millisecond are sent together,
when the last of them is due: a generator that sent each at its own time would take the core that the broker needs. By
what that makes a message late, it counts as late.
"""

import math
from typing import Protocol

import numpy as np

from ackworth.driver.contract import Int64s
from ackworth.model.clock import SECOND

TOGETHER = SECOND // 1000


class Pace(Protocol):
    def due(self, now: int) -> int:
        """How many messages of the phase are to be sent by now, from its beginning."""
        ...

    def late(self, first: int, count: int, now: int) -> Int64s | int:
        """By how much messages first .. first + count of the phase are late if they are sent now."""
        ...

    def next_at(self, sent: int, now: int) -> int:
        """When the message after the first `sent` ones is to be sent."""
        ...


class AsFastAsPossible:
    def due(self, now: int) -> int:
        return 1 << 62

    def late(self, first: int, count: int, now: int) -> Int64s | int:
        return 0

    def next_at(self, sent: int, now: int) -> int:
        return now


class AtRate:
    def __init__(self, start: int, per_second: float) -> None:
        self._start = start
        self._interval = SECOND / per_second
        self._together = max(1, int(TOGETHER / self._interval))

    def due(self, now: int) -> int:
        due = 0 if now < self._start else int((now - self._start) / self._interval) + 1
        return due - due % self._together

    def late(self, first: int, count: int, now: int) -> Int64s | int:
        due: Int64s = self._start + (np.arange(first, first + count) * self._interval).astype(np.int64)
        return np.maximum(now - due, 0)

    def next_at(self, sent: int, now: int) -> int:
        last = sent - sent % self._together + self._together - 1
        return self._start + math.ceil(last * self._interval)

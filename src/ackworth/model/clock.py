"""Time under control: durations come from one monotonic clock, shared by all processes of a host."""

import time
from typing import Protocol

SECOND = 1_000_000_000


class Clock(Protocol):
    def now(self) -> int:
        """Nanoseconds of the monotonic clock."""
        ...

    def sleep_until(self, t: int) -> None:
        """Return at t, or at once if t has passed."""
        ...


class MonotonicClock:
    now = staticmethod(time.monotonic_ns)

    def sleep_until(self, t: int) -> None:
        while (left := t - self.now()) > 0:
            time.sleep(left / SECOND)

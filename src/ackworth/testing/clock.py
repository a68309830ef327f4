"""A clock that only moves when it is looked at or slept on."""


class FakeClock:
    def __init__(self, start: int = 1_000_000_000, step: int = 1_000) -> None:
        self._now = start
        self._step = step

    def now(self) -> int:
        self._now += self._step
        return self._now

    def sleep_until(self, t: int) -> None:
        self._now = max(self._now, t)

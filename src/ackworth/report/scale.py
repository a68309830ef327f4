"""From values to places: where a value lies on an axis, and which values the axis names."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from ackworth.report.text import compact, duration

_CLOCK_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)


@dataclass(frozen=True)
class Tick:
    place: float  # 0 is the beginning of the axis, 1 its end
    label: str


class Scale(Protocol):
    def place(self, value: float) -> float:
        """0 at the bottom of the axis, 1 at its top."""
        ...

    def ticks(self) -> list[Tick]: ...


@dataclass(frozen=True)
class Linear:
    """From 0 to a round number at or above top."""

    top: float
    step: float

    @classmethod
    def over(cls, values: Iterable[float | None], intervals: int = 4) -> "Linear":
        highest = max((value for value in values if value is not None), default=0) or 1
        step = round_step(highest / intervals)
        return cls(step * math.ceil(highest / step), step)

    def place(self, value: float) -> float:
        return value / self.top

    def ticks(self) -> list[Tick]:
        values = [n * self.step for n in range(round(self.top / self.step) + 1)]
        return [Tick(self.place(value), compact(value)) for value in values]


@dataclass(frozen=True)
class Logarithmic:
    """Whole decades of nanoseconds, so that a line that is one higher is ten times slower."""

    low: int  # powers of ten
    high: int

    @classmethod
    def over(cls, values: Iterable[float | None]) -> "Logarithmic":
        known = [max(value, 1) for value in values if value is not None] or [1]
        low = math.floor(math.log10(min(known)))
        return cls(low, max(math.ceil(math.log10(max(known))), low + 1))

    def place(self, value: float) -> float:
        exponent = math.log10(max(value, 10**self.low))
        return (exponent - self.low) / (self.high - self.low)

    def ticks(self) -> list[Tick]:
        return [Tick(self.place(10**n), _decade(10**n)) for n in range(self.low, self.high + 1)]


@dataclass(frozen=True)
class Clock:
    """Seconds since the trial's start, along the bottom."""

    end: float

    def place(self, second: float) -> float:
        return min(max(second / self.end, 0), 1)

    def ticks(self, intervals: int) -> list[Tick]:
        step = next((s for s in _CLOCK_STEPS if s * intervals >= self.end), _CLOCK_STEPS[-1])
        return [Tick(self.place(s), self.label(s)) for s in range(0, math.floor(self.end) + 1, step)]

    def label(self, second: int) -> str:
        if self.end <= 120:
            return f"{second} s"
        hours, minutes = second // 3600, second // 60
        if self.end <= 7200:
            return f"{minutes}:{second % 60:02}"
        return f"{hours}:{minutes % 60:02}:{second % 60:02}"


def round_step(least: float) -> float:
    """The smallest of 1, 2 or 5 times a power of ten that is not below least."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= least * (1 - 1e-9))


def _decade(nanoseconds: int) -> str:
    return duration(nanoseconds).replace(".00", "").replace(".0", "")

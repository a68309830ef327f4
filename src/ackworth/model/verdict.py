"""The answer: held, broken or unknown, and what it is made of."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    HELD = "held"
    BROKEN = "broken"
    UNKNOWN = "unknown"

    @property
    def exit_code(self) -> int:
        return {Verdict.HELD: 0, Verdict.BROKEN: 1, Verdict.UNKNOWN: 2}[self]


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Broken beats unknown beats held; of nothing, nothing is known."""
    found = set(verdicts)
    for verdict in (Verdict.BROKEN, Verdict.UNKNOWN, Verdict.HELD):
        if verdict in found:
            return verdict
    return Verdict.UNKNOWN


@dataclass(frozen=True, kw_only=True)
class Check:
    """One question put to the record, and its answer."""

    name: str  # "lost", "duplicates", ...
    verdict: Verdict
    found: int | float | None  # how many, or how much; None if it could not be told
    rule: str  # what had to be, in words: "no acked message is lost"
    reason: str  # what was seen, in words; for unknown, why it could not be told
    ids: tuple[str, ...] = ()  # the first of the offending messages, "producer/seq"


@dataclass(frozen=True, kw_only=True)
class Claims:
    """What a broker, at its settings, promises."""

    survives: frozenset[str]  # the faults after which every acked message is still there
    ordered: bool  # a producer's messages of one topic reach one consumer in the order of sending
    once: bool  # nothing is delivered twice, but after a fault or a consumer's death
    source: str  # who says so, and where
    ordered_alone: bool = False  # `ordered` is promised only to a consumer that is the only one of its group
    survives_in_part: frozenset[str] = frozenset()  # the faults that it also survives if they spare some of its nodes

    def covers(self, fault: str, *, whole: bool) -> bool:
        """Whether it survives the fault; whole: of all its nodes at once."""
        return fault in self.survives or (not whole and fault in self.survives_in_part)

    def plain(self) -> dict[str, Any]:
        """As JSON knows it."""
        return {name: sorted(value) if isinstance(value, frozenset) else value for name, value in vars(self).items()}

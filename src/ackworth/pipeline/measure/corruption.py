"""Deliveries that are not what they should be: corrupt, of another run, or from a topic where they do not belong."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ackworth.model.outcome import Delivery
from ackworth.pipeline.context import Context
from ackworth.pipeline.measurement import TOTAL, Findings, Key, Measurement, ids_of, smallest
from ackworth.pipeline.rows import Rows

KINDS = ("corrupt", "foreign", "misdelivered")


class Corruption(Measurement):
    name = "corruption"
    needs = ("account",)
    columns = {"delivered": ("group", "producer", "topic", "seq", "flags")}  # noqa: RUF012

    def __init__(self, context: Context, knows: None) -> None:
        super().__init__(context, knows)
        self._counts: Counter[tuple[str, int]] = Counter()
        self._named: dict[str, list[tuple[int, int]]] = {kind: [] for kind in KINDS}

    def fold(self, table: str, rows: Rows) -> None:
        for group, part in rows.by("group"):
            everything = self.context.trial.groups[group].topics is None
            if part.ordinary and everything:
                continue
            self._add("corrupt", group, part.where((part["flags"] & (Delivery.INTACT | Delivery.FOREIGN)) == 0))
            self._add("foreign", group, part.where(part.flagged(Delivery.FOREIGN)))
            misplaced = part.intact.flagged(Delivery.MISDELIVERED)
            if not everything:
                misplaced |= ~self.context.topics_read(group)[part.intact["topic"]]
            self._add("misdelivered", group, part.intact.where(misplaced))

    def _add(self, kind: str, group: int, rows: Rows) -> None:
        if len(rows):
            self._counts[kind, group] += len(rows)
            self._named[kind] = smallest(self._named[kind] + ids_of(rows))

    def partials(self) -> Iterable[tuple[Key, Any]]:
        yield TOTAL, (self._counts, self._named)

    @classmethod
    def reduce(cls, context: Context, knows: None, key: Key, partials: list[Any]) -> Any:
        counts: Counter[tuple[str, int]] = Counter()
        for some, _ in partials:
            counts.update(some)
        return counts, {kind: smallest(n for _, named in partials for n in named[kind]) for kind in KINDS}

    @classmethod
    def conclude(cls, context: Context, found: Mapping[Key, Any], findings: Findings) -> None:
        counts, named = found.get(TOTAL, (Counter(), {kind: [] for kind in KINDS}))
        for number, group in enumerate(findings.groups):
            group["corrupt"] = counts["corrupt", number]
            group["foreign"] = counts["foreign", number]
            group["misdelivered"] = counts["misdelivered", number]
            group["phantom"] += counts["foreign", number]
        for kind in ("corrupt", "misdelivered"):
            findings.offenders[kind] = [f"{producer}/{seq}" for producer, seq in named[kind]]
        foreign = [f"{producer}/{seq} of another run" for producer, seq in named["foreign"]]
        findings.offenders["phantom"] += foreign

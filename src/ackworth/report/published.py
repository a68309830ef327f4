"""What the source of a plan published, paired with what was measured here."""

from dataclasses import dataclass
from typing import Any

from ackworth.model.result import RunResult, TrialResult
from ackworth.report.text import count, fields, rate, words

NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Pair:
    what: str
    published: str
    measured: str


@dataclass(frozen=True)
class Comparison:
    source: str
    hardware: str
    pairs: tuple[Pair, ...]


def comparisons(result: RunResult, trial: TrialResult) -> list[Comparison]:
    tables = [table for table in result["published"] if table.get("trial") in (None, trial["trial"])]
    return [
        Comparison(
            str(table.get("source", "unnamed source")),
            str(table.get("hardware", "hardware not named")),
            tuple(_pair(trial, row) for row in table.get("rows", [])),
        )
        for table in tables
    ]


def _pair(trial: TrialResult, row: dict[str, Any]) -> Pair:
    """A row's `what` is a name of the account, of the groups' accounts (their sum) or of the throughput."""
    what, value = str(row.get("what")), row.get("value")
    key = what.replace(" ", "_")
    number = value if isinstance(value, int | float) else None
    if key in trial["throughput"]:
        return Pair(words(key), rate(number), rate(trial["throughput"][key]))
    measured = _counted(trial, key)
    return Pair(words(key), count(number), NOT_MEASURED if measured is None else count(measured))


def _counted(trial: TrialResult, key: str) -> int | None:
    if key in trial["account"]:
        return int(fields(trial["account"])[key])
    counted = [fields(group)[key] for group in trial["groups"] if key in group]
    return sum(counted) if counted else None

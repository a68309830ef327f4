"""What a trial was, beside its events: `trial.json`, written before the first event, and `end.json`, after the last.

A trial without `end.json` was killed: its record can be judged, and its verdict says so.
"""

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ackworth.history.schema import VERSION
from ackworth.model.errors import BadRecord
from ackworth.model.files import write_json
from ackworth.model.verdict import Claims


@dataclass(frozen=True, kw_only=True)
class Group:
    """A consumer group and what it must get."""

    name: str
    topics: tuple[int, ...] | None  # indexes of its topics; None means all


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One cell of a plan: one broker at one setting under one workload and its faults."""

    run: str  # 16 hex digits, which every body carries
    name: str  # its name within the run
    plan: dict[str, Any]  # the plan with case, matrix, size and --set applied, as plain data
    topics: tuple[str, ...]
    groups: tuple[Group, ...]
    producers: int
    consumers: int
    reasons: tuple[str, ...]  # texts of `outcome.reason`; the first is empty
    claims: Claims
    seed: int
    t_zero: int  # the monotonic clock at the start, nanoseconds
    wall_zero: str  # the wall clock at t_zero, ISO 8601 with zone
    broker: dict[str, Any]  # kind, version, settings, topology, filesystem
    cores: int = 0  # of the machine; 0 if not recorded
    case: str = ""  # of the plan
    cell: str = ""  # of the plan's matrix
    repeat: int = 1  # which of the repeats of this case in this cell
    version: int = VERSION


@dataclass(frozen=True, kw_only=True)
class End:
    """How a trial ended."""

    t: int
    drained: bool  # every group was read until nothing came any more
    problems: tuple[str, ...] = ()  # each a reason why the verdict must be unknown
    notes: tuple[str, ...] = field(default=())  # worth saying, no reason for doubt
    rows: dict[str, int] = field(default_factory=dict)  # of the tables of messages: fewer in the record are damage, as
    # are more, unless there were problems


def write_trial(directory: Path, trial: Trial) -> None:
    data = dataclasses.asdict(trial)
    data["claims"] = trial.claims.plain()
    write_json(directory / "trial.json", data)


def write_end(directory: Path, end: End) -> None:
    write_json(directory / "end.json", dataclasses.asdict(end))


def parse_trial(text: str, where: str) -> Trial:
    data = _object(text, where)
    if data.get("version") != VERSION:
        raise BadRecord(
            f"{where}: record version {data.get('version')!r}, this Ackworth reads {VERSION}: "
            "judge it with the version that wrote it"
        )
    try:
        claims = data["claims"]
        sets = {name: frozenset(value) for name, value in claims.items() if isinstance(value, list)}
        data["claims"] = Claims(**{**claims, **sets})
        data["groups"] = tuple(
            Group(name=g["name"], topics=None if g["topics"] is None else tuple(g["topics"])) for g in data["groups"]
        )
        return Trial(**{**data, "topics": tuple(data["topics"]), "reasons": tuple(data["reasons"])})
    except (KeyError, TypeError) as error:
        raise BadRecord(
            f"{where}: not a trial of Ackworth's ({error}): name a directory that `ackworth run` made"
        ) from error


def parse_end(text: str, where: str) -> End:
    data = _object(text, where)
    try:
        return End(**{**data, "problems": tuple(data["problems"]), "notes": tuple(data["notes"])})
    except (KeyError, TypeError) as error:
        raise BadRecord(f"{where}: not the end of a trial ({error}): the file was changed, restore it") from error


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise BadRecord(f"{where}: not JSON ({error}): the record is damaged, run the plan again") from error
    if not isinstance(data, dict):
        raise BadRecord(f"{where}: holds a {type(data).__name__}, not an object: not a record of Ackworth's")
    return data

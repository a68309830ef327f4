"""`results.json`: the result of a run, written whole and read back with every field checked."""

import json
from pathlib import Path
from typing import NoReturn, cast

from ackworth.model.errors import BadRecord
from ackworth.model.files import write_json
from ackworth.model.result import RunResult
from ackworth.model.verdict import Verdict
from ackworth.report.shape import mismatch

NAME = "results.json"


def write_results(directory: Path, result: RunResult) -> None:
    write_json(directory / NAME, result)


def read_results(directory: Path) -> RunResult:
    path = directory / NAME
    remedy = f"judge the run again with `ackworth check {directory}`"
    try:
        data = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except OSError as error:
        raise BadRecord(f"{path}: {error.strerror}: {remedy}") from error
    except ValueError as error:
        raise BadRecord(f"{path}: not JSON ({error}): {remedy}") from error
    if wrong := mismatch(data, RunResult, "result") or _contradiction(cast(RunResult, data)):
        raise BadRecord(f"{path}: {wrong}: {remedy}")
    return cast(RunResult, data)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


def _contradiction(result: RunResult) -> str | None:
    """What types do not say: verdicts are three, and a series has one value a second."""
    for place in (
        result,
        *result["trials"],
        *(check for trial in result["trials"] for check in trial["checks"]),
    ):
        if place["verdict"] not in list(Verdict):
            return f"verdict {place['verdict']!r} is none of {', '.join(Verdict)}"
    for trial in result["trials"]:
        lengths = {name: len(cast(list[object], values)) for name, values in trial["series"].items()}
        if len(set(lengths.values())) > 1:
            return f"the series of trial {trial['trial']!r} differ in length: {lengths}"
    return None

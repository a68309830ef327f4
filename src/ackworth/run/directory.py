"""A run's directory: `run.json` says what was asked for, below `trials/` is a record each."""

import json
import secrets
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ackworth.model.errors import BadInput, BadRecord
from ackworth.model.files import write_json, write_whole

VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a run was told to do, and where."""

    run: str  # 16 hex digits
    plan: str
    title: str
    size: str
    seed: int
    sets: tuple[str, ...]
    trials: tuple[str, ...]  # in order; one without a directory was never begun
    started: str  # wall clock, ISO 8601
    ackworth: str
    environment: dict[str, Any]
    brokers: tuple[str, ...] = ()  # those that were named, or that `every` stood for; none: the plan's own
    repeats: int | None = None  # instead of the plan's
    attached: str | None = None  # the URL of the user's own broker, without its password
    on: tuple[str, ...] = ()  # the user's own commands for faults
    version: int = VERSION


def new_id() -> str:
    return secrets.token_hex(8)


def default_out(plan: str) -> Path:
    return Path("runs") / f"{plan}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def create(path: Path) -> None:
    """Make a run's directory. One that holds something is refused: nothing is ever written over.

    Of two runs that want the same one at the same time, the one that makes `trials` has it.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise FileExistsError
        (path / "trials").mkdir()
    except FileExistsError:
        raise BadInput(f"{path}: is not empty: name a new directory with --out") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be made ({error.strerror}): name another directory with --out") from error


def begin(path: Path, run: Run, plan_text: str) -> None:
    write_whole(path / "plan.yaml", plan_text)
    write_json(path / "run.json", asdict(run))


def open_run(path: Path) -> Run:
    """A run's own account of itself. Raises BadRecord."""
    file = path / "run.json"
    if not file.is_file():
        raise BadRecord(
            f"{path}: no run of Ackworth's (there is no run.json in it): name a directory that `ackworth run` made"
        )
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        lists = {name: tuple(data[name]) for name in ("sets", "trials", "brokers", "on") if name in data}
        found = Run(**{**data, **lists})
        if not isinstance(found.seed, int) or not all(isinstance(name, str) for name in found.trials):
            raise ValueError("its seed is no number, or a trial has no name")
    except (ValueError, TypeError, KeyError) as error:
        raise BadRecord(f"{file}: damaged ({error}): restore it, or run the plan again") from error
    if found.version != VERSION:
        raise BadRecord(f"{file}: version {found.version}, this Ackworth reads {VERSION}: use the one that wrote it")
    return found


def trial_directories(path: Path, run: Run) -> dict[str, Path]:
    """The trials that were begun, in order."""
    folders = {name: path / "trials" / name for name in run.trials}
    return {name: folder for name, folder in folders.items() if (folder / "trial.json").exists()}

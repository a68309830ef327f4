"""What a killed run may have left behind, and how the next start removes it.

A run notes itself in a file before it makes anything. Its processes carry the run in their
environment, its mounts and loop devices lie below its directory. The kernel clears most of it by
itself: processes die with the conductor, mounts with the last process. What is left, a later start
of any run finds by the note and removes; the record stays.
"""

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ackworth.broker.process import kill_all, started, states
from ackworth.model.files import mounts, write_json
from ackworth.model.words import counted

VARIABLE = "ACKWORTH_RUN"


def notes_folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "ackworth" / "live"


@contextlib.contextmanager
def noted(run: str, directory: Path) -> Iterator[None]:
    """While a run lives, its note does; everything it starts is marked as its own."""
    folder = notes_folder()
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / f"{run}.json"
    pid = os.getpid()
    write_json(note, {"run": run, "pid": pid, "started": started(pid), "directory": str(directory.resolve())})
    os.environ[VARIABLE] = run
    try:
        yield
    finally:
        del os.environ[VARIABLE]
        note.unlink(missing_ok=True)


def alive(run: str) -> bool:
    """Whether another process that conducts a run still lives."""
    try:
        note = json.loads((notes_folder() / f"{run}.json").read_text())
        return _lives(note) and note["pid"] != os.getpid()
    except (OSError, ValueError, KeyError):
        return False


def _lives(note: dict[str, Any]) -> bool:
    """One that was killed is dead also while nobody has taken note of it."""
    return bool(started(note["pid"]) == note["started"] and not states(note["pid"]) <= set("ZX"))


def sweep() -> list[str]:
    """Remove what dead runs left behind; returns a line for each that left something."""
    said = []
    for path in sorted(notes_folder().glob("*.json")):
        try:
            note = json.loads(path.read_text())
            run, directory, lives = note["run"], Path(note["directory"]), _lives(note)
        except (OSError, ValueError, KeyError, TypeError):
            path.unlink(missing_ok=True)  # a note that cannot be read helps nobody
            continue
        if lives:
            continue
        removed = _remove(run, directory)
        if not _left(directory):
            path.unlink(missing_ok=True)
        if removed:
            said.append(f"run {run} was killed; removed {', '.join(removed)}; its record is in {directory}")
    return said


def _remove(run: str, directory: Path) -> list[str]:
    removed = []
    pids = _processes(run)
    if pids:
        kill_all(lambda: _processes(run))
        removed.append(counted(len(pids), "process"))
    nodes = _left(directory)
    removed += [f"the mount {point}" for point in _mounts_below(nodes) if _done("umount", point)]
    for folder in nodes:
        if not _mounts_below([folder]):
            removed += [f"the loop device {loop}" for loop in _loops_below([folder]) if _done("losetup", "-d", loop)]
            shutil.rmtree(folder, ignore_errors=True)
    return removed + [f"the broker's data in {folder}" for folder in nodes if not folder.exists()]


def _done(*command: str) -> bool:
    return not subprocess.run(command, check=False, capture_output=True).returncode


def _left(directory: Path) -> list[Path]:
    """Where the brokers' data is. As long as there is any, the note stays: somebody else may be using it."""
    return sorted(directory.glob("trials/*/nodes"))


def _processes(run: str) -> list[int]:
    wanted = f"{VARIABLE}={run}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def _mounts_below(folders: list[Path]) -> list[str]:
    return [
        mount.point for mount in mounts() if any(mount.point.startswith(f"{folder.resolve()}/") for folder in folders)
    ]


def _loops_below(folders: list[Path]) -> list[str]:
    found = []
    for file in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            image = file.read_text().strip()
            if any(image.startswith(f"{folder.resolve()}/") for folder in folders):
                found.append(f"/dev/{file.parts[3]}")
    return found

"""Processes as /proc shows them: who has files open below a directory, who is stopped, who is gone."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from ackworth.model.errors import AckworthError


def holders(directory: Path) -> list[int]:
    """The processes of this run that have a file below the directory open, mapped, or as their working directory.

    Only what this process started counts: somebody else's shell in there is not ours to kill.
    """
    inside = f"{directory.resolve()}/"
    return [pid for pid in descendants(os.getpid()) if any(f"{path}/".startswith(inside) for path in _paths(pid))]


def descendants(ancestor: int) -> list[int]:
    """All children of a process, and theirs."""
    parents = {int(name): _parent(int(name)) for name in os.listdir("/proc") if name.isdigit()}
    found: list[int] = []
    generation = {ancestor}
    while generation:
        generation = {pid for pid, parent in parents.items() if parent in generation}
        found += generation
    return sorted(found)


def of_session(leader: int) -> list[int]:
    """All processes of a session, also those whose parents are gone."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and _session(int(name)) == leader]


def _session(pid: int) -> int:
    try:
        return int(_stat(f"/proc/{pid}")[3])
    except (OSError, IndexError):
        return 0


def _parent(pid: int) -> int:
    try:
        return int(_stat(f"/proc/{pid}")[1])
    except (OSError, IndexError):
        return 0


def _stat(folder: str) -> list[str]:
    """The fields of a stat file after the name, which may hold anything."""
    return Path(f"{folder}/stat").read_text().rpartition(")")[2].split()


def started(pid: int) -> int:
    """When it started, in ticks since boot: with the pid, who it is. 0 if it is gone."""
    try:
        return int(_stat(f"/proc/{pid}")[19])
    except (OSError, IndexError):
        return 0


def _paths(pid: int) -> Iterable[str]:
    """What a process has open. One that ends meanwhile, or is not ours to see, has nothing open."""
    for folder in ("fd", "map_files"):
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/{folder}"):
                with contextlib.suppress(OSError):
                    yield os.readlink(f"/proc/{pid}/{folder}/{name}")
    with contextlib.suppress(OSError):
        yield os.readlink(f"/proc/{pid}/cwd")


def send(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def states(pid: int) -> set[str]:
    """The states of all its threads: 'R', 'S', 'T', 'D', 'Z', ...; empty if it is gone."""
    found = set()
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError, IndexError):
                found.add(_stat(f"/proc/{pid}/task/{task}")[0])
    return found


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Look again and again until it is so. Raises AckworthError after so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AckworthError(f"{what}: not within {seconds:g} s")
        time.sleep(0.002)


def stop_and_wait(pids: Iterable[int], seconds: float = 60) -> None:
    """SIGSTOP, and wait until no thread of them runs: stopping is asynchronous."""
    pids = list(pids)
    send(pids, signal.SIGSTOP)
    wait_until(lambda: all(states(pid) <= set("TtDZX") for pid in pids), seconds, f"stopping {pids}")


def stop_all(processes: Callable[[], list[int]]) -> list[int]:
    """Stop what there is, again and again, for what was forked meanwhile; returns all that were stopped.

    One that gave up its files just before it was stopped is no longer listed, and would stand still for ever.
    """
    stopped: list[int] = []
    while pids := [pid for pid in processes() if pid not in stopped]:
        stop_and_wait(pids)
        stopped += pids
    return stopped


def kill_all(processes: Callable[[], list[int]]) -> None:
    """Kill what there is, again and again, for what was forked meanwhile."""
    while pids := processes():
        kill_and_wait(pids)


def kill_and_wait(pids: Iterable[int], seconds: float = 60) -> None:
    """SIGKILL, and wait until they are gone or only wait to be reaped."""
    pids = list(pids)
    send(pids, signal.SIGKILL)
    wait_until(lambda: all(states(pid) <= set("ZX") for pid in pids), seconds, f"killing {pids}")

"""Processes as /proc shows them: who has files open below a directory, who is stopped, who is gone."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from ackworth.model.errors import AckworthError


def holders(directory: Path) -> list[int]:
    """The processes that have a file below the directory open, mapped, or as their working directory."""
    inside = f"{directory.resolve()}/"
    return [pid for pid in _pids() if pid != os.getpid() and any(f"{path}/".startswith(inside) for path in _paths(pid))]


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


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
                stat = Path(f"/proc/{pid}/task/{task}/stat").read_text()
                found.add(stat.rpartition(")")[2].split()[0])
    return found


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Look again and again until it is so. Raises AckworthError after so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AckworthError(f"{what}: not within {seconds:g} s")
        time.sleep(0.002)


def stop_and_wait(pids: Iterable[int], seconds: float = 10) -> None:
    """SIGSTOP, and wait until no thread of them runs: stopping is asynchronous."""
    pids = list(pids)
    send(pids, signal.SIGSTOP)
    wait_until(lambda: all(states(pid) <= set("TtDZX") for pid in pids), seconds, f"stopping {pids}")


def kill_and_wait(pids: Iterable[int], seconds: float = 10) -> None:
    """SIGKILL, and wait until they are gone or only wait to be reaped."""
    pids = list(pids)
    send(pids, signal.SIGKILL)
    wait_until(lambda: all(states(pid) <= set("ZX") for pid in pids), seconds, f"killing {pids}")

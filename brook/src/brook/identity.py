"""Who a client is, and whether it is certainly dead.

A client's id is `label/place/pid/started/unique`. The place is the boot of the machine and the pid
namespace, so that a pid is only ever compared with pids that it can be compared with; the time when
the process started tells it from a later process with the same pid. A client of another place, or of which
the system does not tell, is never called dead: its lease tells.
"""

import functools
import os
import socket
import uuid
from pathlib import Path

_PROC = Path("/proc")
UNKNOWN = 0  # when the process started


def new_client_id(label: str | None = None) -> str:
    name = (label or socket.gethostname()).replace("/", "-")
    pid = os.getpid()
    try:
        started = _started(pid)
    except OSError:
        started = None
    return f"{name}/{_place()}/{pid}/{started or UNKNOWN}/{uuid.uuid4().hex[:12]}"


def short_name(client: str) -> str:
    """For people: label/pid."""
    label, _, pid, _, _ = client.split("/")
    return f"{label}/{pid}"


def is_dead(client: str) -> bool:
    """True only if the process certainly is no more."""
    _, place, pid, started, _ = client.split("/")
    if not place or place != _place() or int(started) == UNKNOWN:
        return False
    try:
        return _started(int(pid)) != int(started)
    except OSError:
        return False


def _place() -> str:
    """Where pids mean the same; empty on a system that does not tell."""
    return _place_of(os.getpid())


@functools.lru_cache(maxsize=1)
def _place_of(pid: int) -> str:
    """Of this process, which never moves to another; a fork of it may have."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}-{(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


def _started(pid: int) -> int | None:
    """When the process started, in ticks since boot; None if there is no such living process. OSError: nobody tells."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        if _is_gone(pid):
            return None
        raise
    # The name, in parentheses, may hold anything: what follows the last parenthesis is regular.
    fields = stat.rpartition(")")[2].split()
    state, threads, started = fields[0], int(fields[17]), int(fields[19])
    # A killed process waits as a zombie for its parent; one whose main thread alone ended lives on.
    gone = state in "ZX" and threads <= 1
    return None if gone else started


def _is_gone(pid: int) -> bool:
    """A process that is not listed may be there all the same, hidden from those of other users."""
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    return False

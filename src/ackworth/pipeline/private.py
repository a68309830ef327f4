"""A directory for a session's files, which does not outlive its owner for long.

Its owner holds a lock on it, which nobody inherits and which the kernel takes back from the dead. So
whoever can lock such a directory has found one that is left behind, and removes it.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "ackworth-session-"


@contextlib.contextmanager
def private_directory() -> Iterator[Path]:
    """A new directory, gone at the end; what killed owners left is removed before."""
    _sweep(Path(tempfile.gettempdir()))
    path, lock = _create()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def _create() -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        # Until it is locked it looks left behind: another session may have removed it.
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(path, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if path.exists():
                return path, lock
            os.close(lock)


def _sweep(folder: Path) -> None:
    for path in folder.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # somebody else removed it, or it is none of ours to look into
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                _remove_if_left(path, lock)
            finally:
                os.close(lock)


def _remove_if_left(path: Path, lock: int) -> None:
    """Raises BlockingIOError if its owner lives."""
    if os.fstat(lock).st_uid == os.geteuid():
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)

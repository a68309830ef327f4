"""Forks of a process that has SQLite files open.

SQLite remembers, for a whole process, which locks it holds on a file. A forked process inherits that memory and not the
locks: whatever it opens of the file it would use without them. Its parent, if it closes the file, would then see nobody
else there, and delete the log into which the other goes on to commit. So

1. a fork waits until no thread is at work with a file, and none begins before it is over;
2. the forked process at once closes what it has inherited: with that SQLite forgets what it believes to hold, and what
   the process opens from then on has locks of its own. The parent's locks are not touched by it.
"""

import os
import threading
import weakref
from typing import Protocol


class Forkable(Protocol):
    def pause(self) -> None:
        """Return once nobody is at work; nobody is from here on."""

    def go_on(self) -> None:
        """After pause."""

    def abandon(self) -> None:
        """After pause, in the forked process: close what was inherited."""


class _Forks:
    def __init__(self) -> None:
        self._files: weakref.WeakSet[Forkable] = weakref.WeakSet()
        self._paused: list[Forkable] = []
        self._gate = threading.Lock()

    def register(self, file: Forkable) -> None:
        """Before it is opened, and paused: it goes on once it is open."""
        with self._gate:
            file.pause()
            self._files.add(file)

    def before(self) -> None:
        """If it is interrupted the fork goes on all the same; what was paused by then goes on afterwards."""
        self._gate.acquire()
        for file in list(self._files):
            file.pause()
            self._paused.append(file)

    def in_parent(self) -> None:
        for file in self._paused:
            file.go_on()
        self._end()

    def in_child(self) -> None:
        for file in self._paused:
            file.abandon()
            file.go_on()
        self._end()

    def _end(self) -> None:
        self._paused = []
        self._gate.release()


_forks = _Forks()
register = _forks.register
os.register_at_fork(before=_forks.before, after_in_parent=_forks.in_parent, after_in_child=_forks.in_child)

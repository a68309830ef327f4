"""Threads that call a step again and again: at once if there was work, after a nap if there was none."""

import logging
import threading
import time
from collections.abc import Callable
from typing import TypeAlias

from brook.errors import BrookError, Closed, DatabaseFull, DatabaseLocked, StoreFailed, Unreachable
from brook.model import Message, Refusal

Handler: TypeAlias = Callable[[list[Message]], Refusal | None]

log = logging.getLogger("brook")

# How long one sleeps between two looks at an empty queue, in seconds.
FIRST_NAP, LONGEST_NAP = 0.0005, 0.02
# And after an error.
PAUSE = 1.0
# Errors of a database that may be over then.
PASSING = (DatabaseLocked, DatabaseFull, StoreFailed, Unreachable)


class Workers:
    def __init__(self, name: str, threads: int, step: Callable[[], bool]) -> None:
        self.stopping = threading.Event()
        self._name = name
        self._step = step
        names = [f"{name}-{n}" for n in range(threads)]
        self.threads = [threading.Thread(target=self._work, name=name, daemon=True) for name in names]

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def tell_to_stop(self) -> None:
        self.stopping.set()

    @property
    def is_one_calling(self) -> bool:
        """Whether it is one of these threads that asks: what they call may want to stop them."""
        return threading.current_thread() in self.threads

    def stop(self, grace: float) -> None:
        """Wait so many seconds for what is being done; who is one of them does not wait for itself."""
        self.tell_to_stop()
        end = time.monotonic() + grace
        for thread in self.threads:
            if thread is not threading.current_thread():
                thread.join(max(end - time.monotonic(), 0))

    def _work(self) -> None:
        nap = 0.0
        while not self.stopping.wait(nap):
            try:
                nap = 0.0 if self._step() else min(max(nap * 2, FIRST_NAP), LONGEST_NAP)
            except Closed:
                return
            except Exception as error:
                complain(self._name, error)
                nap = PAUSE


def until_done(who: str, act: Callable[[], None], given_up: threading.Event) -> None:
    """Again after a pause if the database does not let us, until it is given up."""
    while True:
        try:
            return act()
        except PASSING as error:
            if given_up.is_set():
                raise
            complain(who, error)
        given_up.wait(PAUSE)


def complain(who: str, error: Exception) -> None:
    """Of an error after which a thread goes on. One that nobody expected is logged with where it came from."""
    log.error("%s: %s", who, error, exc_info=None if isinstance(error, BrookError) else error)

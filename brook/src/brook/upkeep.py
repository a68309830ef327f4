"""What consumers and listeners do for all, in the background: tell of the listeners, forget who is gone, and clean.

1. A client that certainly is dead, or has not been heard of for GONE seconds, is handed back: others have what it
   had in flight, and it is listed no more.
2. Cleaning is the work of one: of the consumers with threads and the listeners that have been heard of lately, the
   first by its id. No lock and no vote; while two disagree about who is there, both clean, which does no harm.
"""

import threading
from collections.abc import Callable

from brook.attendance import Attendance
from brook.errors import Closed
from brook.retention import clean_all
from brook.settings import LiveSettings
from brook.states import ClientState, ListenerState
from brook.stores.base import Store
from brook.workers import complain, log

GONE = 24 * 3600.0
FIRST_LOOK = 1.0  # seconds; who is gone by then costs nothing
# Consumers tell three times in a lease that they are there.
_LEASES = 2


class Upkeep:
    def __init__(
        self,
        store: Store,
        settings: LiveSettings,
        client: str,
        clock: Callable[[], float],
        attendance: Attendance,
    ) -> None:
        self._attendance = attendance
        self._store = store
        self._settings = settings
        self._client = client
        self._clock = clock
        self._cleaned = clock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """A second call does nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="brook-upkeep", daemon=True)
            self._thread.start()

    def stop(self, grace: float) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(grace)

    def step(self) -> None:
        """Do what there is to do now."""
        self._attendance.tell()
        self._forget_the_gone()
        every, now = self._settings.now.clean_every, self._clock()
        if every is not None and abs(now - self._cleaned) >= every and self._is_first():  # clocks may be set back
            self._cleaned = now
            for topic, messages in clean_all(self._store, self._settings.now, now).items():
                log.info("topic %r: %d messages deleted: too old or too many", topic, messages)

    def _forget_the_gone(self) -> None:
        now = self._clock()
        for client in {c.client for c in self._heard_of() if c.dead or now - (c.seen or 0) > GONE}:
            self._store.hand_back(client)

    def _is_first(self) -> bool:
        lately = self._clock() - _LEASES * self._settings.now.lease
        there = [state.client for state in self._heard_of() if _cleans(state) and (state.seen or 0) >= lately]
        return self._client <= min(there, default=self._client)

    def _heard_of(self) -> list[ClientState | ListenerState]:
        """Who has told that it is there."""
        consumers = [state for state in self._store.client_states() if state.seen is not None]
        return [*consumers, *self._store.listener_states()]

    def _work(self) -> None:
        pause = min(FIRST_LOOK, self._pause())
        while not self._stopping.wait(pause):
            try:
                self.step()
            except Closed:
                return
            except Exception as error:
                complain("upkeep", error)
            pause = self._pause()

    def _pause(self) -> float:
        now = self._settings.now
        return min(now.lease / 3, now.clean_every or now.lease)


def _cleans(state: ClientState | ListenerState) -> bool:
    """Who steps by hand does not."""
    return isinstance(state, ListenerState) or state.threads > 0

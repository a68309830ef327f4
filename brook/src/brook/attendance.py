"""Listeners are seen: what a client's listeners have come to is told now and then, all in one small transaction.

Their progress stays theirs: what is told is for watching alone, and nobody goes by it. A listener is told of for as
long as somebody holds it.
"""

import itertools
import threading
import weakref
from collections.abc import Callable, Sequence

from brook.broadcast import Listener
from brook.errors import AccessDenied
from brook.stores.base import ListenerPlace, Store
from brook.topics import Topics
from brook.workers import log


class Attendance:
    def __init__(self, store: Store, topics: Topics, client: str, clock: Callable[[], float]) -> None:
        self._store = store
        self._topics = topics
        self._client = client
        self._clock = clock
        self._numbers = itertools.count(1)
        self._listeners: weakref.WeakValueDictionary[int, Listener] = weakref.WeakValueDictionary()
        self._told = False  # of some
        self._allowed = True
        self._lock = threading.Lock()

    def add(self, listener: Listener) -> None:
        with self._lock:
            self._listeners[next(self._numbers)] = listener

    def tell(self) -> None:
        """Nothing is written by a client that has no listeners."""
        with self._lock:
            listeners = list(self._listeners.items())
        if (listeners or self._told) and self._allowed:
            places = [place for number, listener in listeners for place in self._places(number, listener)]
            self._told = bool(listeners)
            self._write(places)

    def _write(self, places: Sequence[ListenerPlace]) -> None:
        try:
            self._store.tell_listeners(self._client, places, self._clock())
        except AccessDenied as error:  # who may only read can listen
            self._allowed = False
            log.warning("this client's listeners are not seen: %s", error)

    def _places(self, number: int, listener: Listener) -> list[ListenerPlace]:
        names, nexts = list(dict.fromkeys(listener.names)), listener.next_offsets
        ids = self._topics.ids(names)
        return [ListenerPlace(number, topic, nexts[name]) for name, topic in zip(names, ids, strict=True)]

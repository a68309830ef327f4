"""Listeners are seen: what a client's listeners have come to is told now and then, all in one small transaction.

Their progress stays theirs: what is told is for watching alone, and nobody goes by it. A listener is told of for as
long as somebody holds it.
"""

import itertools
import threading
import weakref
from collections.abc import Callable

from brook.broadcast import Listener
from brook.stores.base import ListenerPlace, Store


class Attendance:
    def __init__(self, store: Store, client: str, clock: Callable[[], float]) -> None:
        self._store = store
        self._client = client
        self._clock = clock
        self._numbers = itertools.count(1)
        self._listeners: weakref.WeakValueDictionary[int, Listener] = weakref.WeakValueDictionary()
        self._told = False  # of some
        self._lock = threading.Lock()

    def add(self, listener: Listener) -> None:
        with self._lock:
            self._listeners[next(self._numbers)] = listener

    def tell(self) -> None:
        """Nothing is written by a client that has no listeners."""
        with self._lock:
            listeners = list(self._listeners.items())
        if listeners or self._told:
            places = [
                ListenerPlace(number, topic, next_offset)
                for number, listener in listeners
                for topic, next_offset in listener.places
            ]
            self._store.tell_listeners(self._client, places, self._clock())
            self._told = bool(listeners)

"""The batches that are with a handler.

Whoever takes a batch off the list is the one that settles it: nobody else renews it from then on, or says that it is
lost.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from brook.errors import LeaseLost
from brook.model import Batch


@dataclass
class Handled:
    batch: Batch
    since: float
    thread: str
    noted: bool = False  # that it is slow
    lost: bool = False  # and that was said


class Handling:
    def __init__(self) -> None:
        self._handled: dict[int, Handled] = {}  # by receipt
        self._lock = threading.Lock()
        self._renewing = threading.Lock()

    def add(self, receipt: int, handled: Handled) -> None:
        with self._lock:
            self._handled[receipt] = handled

    def all(self) -> list[tuple[int, Handled]]:
        with self._lock:
            return list(self._handled.items())

    def take(self, receipt: int) -> Handled | None:
        """Off the list; None if somebody else was faster."""
        with self._lock:
            return self._handled.pop(receipt, None)

    def take_all_but(self, thread: str | None) -> list[Handled]:
        """Who renews one is waited for: what is handed back from here on must not be renewed."""
        with self._renewing, self._lock:
            receipts = [receipt for receipt, handled in self._handled.items() if handled.thread != thread]
            return [self._handled.pop(receipt) for receipt in receipts]

    def renew(self, receipt: int, renew: Callable[[Batch], None]) -> LeaseLost | None:
        """If it is on the list; the error, if it is lost and on the list still."""
        try:
            with self._renewing:
                if handled := self._handled.get(receipt):
                    renew(handled.batch)
        except LeaseLost as error:
            return error if receipt in self._handled else None
        return None

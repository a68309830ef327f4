"""Ctrl-C and SIGTERM, taken when nothing is left half done.

Python raises them wherever it is: between a process's start and the note of its pid, or in the middle of the
clean-up. What must not be torn there makes them wait, and asks for them where it can stop in good order.
"""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def interrupts_wait() -> Iterator[Sequence[object]]:
    """Until the end of this, where they are delivered; meanwhile they are in the list that this gives."""
    came: list[tuple[int, Any]] = []
    if threading.current_thread() is not threading.main_thread():
        yield came  # only the main thread gets any
        return
    numbers = signal.SIGINT, signal.SIGTERM
    before = {number: signal.signal(number, lambda *what: came.append(what)) for number in numbers}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for which, frame in came:
        if callable(handler := before[signal.Signals(which)]):
            handler(which, frame)

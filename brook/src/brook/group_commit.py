"""Many sends, one commit.

A thread that wants to send puts its runs in the queue and waits for its turn. Whoever has the turn
commits everything that is queued by then, for all: while one commit is being synced, the others gather
and go with the next. A lone sender waits for nobody.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence

from brook.errors import BrookError, StoreFailed
from brook.packing import Run


class _Send:
    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self.firsts: list[int] | None = None
        self.error: BrookError | None = None

    def result(self) -> list[int]:
        if self.error is not None:
            raise self.error
        assert self.firsts is not None
        return self.firsts


class GroupCommit:
    def __init__(self, append: Callable[[list[Run]], list[int]]) -> None:
        self._append = append
        self._queue: deque[_Send] = deque()
        self._turn = threading.Lock()

    def __call__(self, runs: Sequence[Run]) -> list[int]:
        """Store the runs; the first offset of each."""
        send = _Send(runs)
        self._queue.append(send)
        with self._turn:
            if send.firsts is None and send.error is None:
                self._commit([self._queue.popleft() for _ in range(len(self._queue))])
        return send.result()

    def _commit(self, sends: list[_Send]) -> None:
        try:
            firsts = iter(self._append([run for send in sends for run in send.runs]))
        except BaseException as error:
            for send in sends:
                send.error = _for_others(error)
            raise
        for send in sends:
            send.firsts = [next(firsts) for _ in send.runs]


def _for_others(error: BaseException) -> BrookError:
    """What those are told whose messages were in the same commit."""
    if isinstance(error, BrookError):
        return type(error)(*error.args)
    return StoreFailed(f"the thread that was committing for all was stopped by {error!r}: look before resending")

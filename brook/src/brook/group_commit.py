"""Many sends, one commit.

A thread that finds nobody committing commits at once: a lone sender waits for nobody. One that finds
another committing queues up and sleeps. When a commit is done, the first in the queue is woken to commit
everything that has gathered by then, for all of them; so while one commit is being synced, the next
one's messages come together.
"""

import threading
from collections.abc import Callable, Sequence

from brook.errors import BrookError, StoreFailed
from brook.packing import Run


class _Send:
    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self.firsts: list[int] | None = None
        self.error: BrookError | None = None
        self.asleep = threading.Lock()
        self.asleep.acquire()

    @property
    def settled(self) -> bool:
        return self.firsts is not None or self.error is not None

    def result(self) -> list[int]:
        if self.error is not None:
            raise self.error
        assert self.firsts is not None
        return self.firsts


class GroupCommit:
    def __init__(self, append: Callable[[list[Run]], list[int]]) -> None:
        self._append = append
        self._mutex = threading.Lock()  # of what follows
        self._queue: list[_Send] = []
        self._committing = False

    def __call__(self, runs: Sequence[Run]) -> list[int]:
        """Store the runs; the first offset of each."""
        send = _Send(runs)
        with self._mutex:
            self._queue.append(send)
            must_wait, self._committing = self._committing, True
        if must_wait:
            send.asleep.acquire()
        if not send.settled:
            self._commit_queue()
        return send.result()

    def _commit_queue(self) -> None:
        with self._mutex:
            sends, self._queue = self._queue, []
        try:
            self._commit(sends)
        finally:
            self._pass_on()
            for send in sends:
                send.asleep.release()

    def _commit(self, sends: list[_Send]) -> None:
        try:
            firsts = iter(self._append([run for send in sends for run in send.runs]))
        except BaseException as error:
            for send in sends:
                send.error = _for_others(error)
            raise
        for send in sends:
            send.firsts = [next(firsts) for _ in send.runs]

    def _pass_on(self) -> None:
        with self._mutex:
            self._committing = bool(self._queue)
            if self._queue:
                self._queue[0].asleep.release()


def _for_others(error: BaseException) -> BrookError:
    """What those are told whose messages were in the same commit."""
    if isinstance(error, BrookError):
        return type(error)(*error.args)
    return StoreFailed(
        f"the thread that was committing for all was stopped by {error!r}: look before resending"
    )

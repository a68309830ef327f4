"""Many sends, one commit.

A thread that finds nobody committing commits at once: a lone sender waits for nobody. One that finds
another committing queues up and sleeps. When a commit is done, the first in the queue is woken to commit
everything that has gathered by then, for all of them; so while one commit is being synced, the next
one's messages come together. Single messages to one topic are packed into one run.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence

from brook.errors import BrookError, StoreFailed
from brook.packing import Body, Extra, Run, pack


class _Send:
    """What one thread wants stored, and the offsets or the error that it is waiting for."""

    __slots__ = ("asleep", "error", "offsets")

    def __init__(self) -> None:
        self.offsets: list[int] | None = None
        self.error: BrookError | None = None
        self.asleep = threading.Lock()
        self.asleep.acquire()


class _SendOne(_Send):
    __slots__ = ("body", "extra", "topic")

    def __init__(self, topic: int, body: Body, extra: Extra | None) -> None:
        super().__init__()
        self.topic, self.body, self.extra = topic, body, extra


class _SendRuns(_Send):
    __slots__ = ("runs",)

    def __init__(self, runs: Sequence[Run]) -> None:
        super().__init__()
        self.runs = runs


class GroupCommit:
    def __init__(self, append: Callable[[list[Run]], list[int]]) -> None:
        self._append = append
        self._mutex = threading.Lock()  # of what follows
        self._queue: list[_Send] = []
        self._committing = False

    def one(self, topic: int, body: Body, extra: Extra | None) -> int:
        """Store a message; its offset."""
        return self._settle(_SendOne(topic, body, extra))[0]

    def runs(self, runs: Sequence[Run]) -> list[int]:
        """Store the runs; the first offset of each."""
        return self._settle(_SendRuns(runs)) if runs else []

    def _settle(self, send: _Send) -> list[int]:
        with self._mutex:
            self._queue.append(send)
            must_wait, self._committing = self._committing, True
        if must_wait:
            send.asleep.acquire()
        if send.offsets is None and send.error is None:
            self._commit_queue()
        if send.offsets is None:
            raise send.error or AssertionError("woken without a result")
        return send.offsets

    def _commit_queue(self) -> None:
        with self._mutex:
            sends, self._queue = self._queue, []
        try:
            self._commit(sends)
        except BaseException as error:
            for send in sends:
                send.error = _for_others(error)
            raise
        finally:
            self._wake_next()
            for send in sends:
                send.asleep.release()

    def _commit(self, sends: list[_Send]) -> None:
        many = [send for send in sends if isinstance(send, _SendRuns)]
        by_topic: defaultdict[int, list[_SendOne]] = defaultdict(list)
        for send in sends:
            if isinstance(send, _SendOne):
                by_topic[send.topic].append(send)
        packed = [
            (ones, pack(topic, [one.body for one in ones], [one.extra for one in ones]))
            for topic, ones in by_topic.items()
        ]
        firsts = iter(self._append([r for s in many for r in s.runs] + [r for _, runs in packed for r in runs]))
        for send in many:
            send.offsets = [next(firsts) for _ in send.runs]
        for ones, runs in packed:
            first, *_ = [next(firsts) for _ in runs]
            for offset, one in enumerate(ones, first):
                one.offsets = [offset]

    def _wake_next(self) -> None:
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

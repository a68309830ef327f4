"""Many sends, one commit.

1. A send is put in the queue. Then, whoever gets the turn commits all that is in the queue, for everybody.
   A lone sender gets it at once; while one thread waits for the disk, the others' messages gather.
2. Who does not get the turn sleeps. A thread that has had the turn wakes the first of those whose messages
   it has committed; each one woken wakes the next of them, and the last one wakes the first in the queue,
   to take the turn. Waking them all at once would make them fight for the interpreter, and by going last
   the next turn finds the messages that those before it have sent in the meantime.
3. Waking up is a matter of speed alone: a sleeper looks after itself every NAP seconds, so that a thread
   which is interrupted on its way leaves nobody asleep for good.
"""

import itertools
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence

from brook.errors import BrookError, StoreFailed
from brook.packing import Body, Extra, Run, pack

NAP = 0.05


class _Send:
    """What one thread wants stored, and the offsets or the error that it is waiting for."""

    __slots__ = ("asleep", "error", "neighbour", "offsets")

    def __init__(self) -> None:
        self.offsets: list[int] | None = None
        self.error: BrookError | None = None
        self.neighbour: _Send | None = None  # the next to be woken
        self.asleep = threading.Lock()
        self.asleep.acquire()

    @property
    def settled(self) -> bool:
        return self.offsets is not None or self.error is not None

    def wake(self) -> None:
        try:
            self.asleep.release()
        except RuntimeError:
            pass  # somebody else has


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
        self._queue: deque[_Send] = deque()
        self._turn = threading.Lock()
        self._waking=False

    def one(self, topic: int, body: Body, extra: Extra | None) -> int:
        """Store a message; its offset."""
        return self._settle(_SendOne(topic, body, extra))[0]

    def runs(self, runs: Sequence[Run]) -> list[int]:
        """Store the runs; the first offset of each."""
        return self._settle(_SendRuns(runs)) if runs else []

    def _settle(self, send: _Send) -> list[int]:
        self._queue.append(send)
        if self._waking: send.asleep.acquire(timeout=NAP)
        while not send.settled:
            if self._turn.acquire(blocking=False):
                try:
                    self._commit_queue(send)
                finally:
                    self._turn.release()
            else:
                send.asleep.acquire(timeout=NAP)
        self._wake_after(send)
        if send.offsets is None:
            raise send.error or AssertionError("settled without a result")
        return send.offsets

    def _wake_after(self, send: _Send) -> None:
        if send.neighbour is not None:
            send.neighbour.wake()
        else:
            self._waking=False
            if self._queue: self._queue[0].wake()

    def _commit_queue(self, mine: _Send) -> None:
        sends = [self._queue.popleft() for _ in range(len(self._queue))]
        for send, neighbour in itertools.pairwise([mine, *(send for send in sends if send is not mine)]):
            send.neighbour = neighbour
        self._waking=len(sends)>1
        try:
            self._commit(sends)
        except BaseException as error:
            for send in sends:
                send.error = _for_others(error)
            raise

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


def _for_others(error: BaseException) -> BrookError:
    """What those are told whose messages were in the same commit."""
    if isinstance(error, BrookError):
        return type(error)(*error.args)
    return StoreFailed(
        f"the thread that was committing for all was stopped by {error!r}: look before resending"
    )

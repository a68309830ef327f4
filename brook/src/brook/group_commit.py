"""Many sends, one commit.

1. A send is put in the queue. Then whoever gets the turn commits all that is in the queue, for everybody.
   A lone sender gets it at once, without a queue; while one waits for the disk, the others' messages gather.
2. Who does not get the turn sleeps. The thread that had it wakes one of those whose messages it committed;
   each one woken wakes the next of them, and the last wakes the first in the queue, to take the turn.
   Waking all at once would make them fight for the interpreter. Until that round is over nobody takes
   the turn, so that those who are back with another message by then go with the next commit.
3. All waking is for speed alone: a sleeper looks after itself every NAP seconds, so that a thread which is
   interrupted halfway leaves nobody asleep for good.
4. An interrupt (an exception from a handler of signals) may come behind any call, also behind the one that took the
   turn. So the turn says who has it, by which it is given back, without a call; and a send stays in the queue until it
   is settled, or its thread was interrupted: nobody does later what nobody waits for.
5. The turn is one of this process: after a fork nobody waits for a thread that is not there.
"""

import contextlib
import functools
import itertools
import json
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

from brook.errors import BadMessage, BodyTooLarge, BrookError, Forbidden, StoreFailed, UnknownTopic
from brook.packing import Body, Extra, Run, pack

NAP = 0.05
# What one of them is refused for by the store, and what was committed with it is not.
_OF_ONE = (Forbidden, BodyTooLarge, BadMessage, UnknownTopic)

Result = TypeVar("Result")


class Waiter(Generic[Result]):
    """What one thread wants done, and the result or the error that it is waiting for."""

    __slots__ = ("asleep", "error", "neighbour", "result", "thread")

    def __init__(self) -> None:
        self.result: Result | None = None
        self.error: BrookError | None = None
        self.neighbour: Waiter[Result] | None = None  # the next to be woken
        self.thread = threading.current_thread().name
        self.asleep = threading.Lock()
        self.asleep.acquire()

    @property
    def settled(self) -> bool:
        return self.result is not None or self.error is not None

    def wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # somebody else was faster
            self.asleep.release()


_Send: TypeAlias = Waiter[list[int]]  # the first offset of each run


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


class Turns(Generic[Result]):
    """Who does it for all that wait."""

    def __init__(self) -> None:
        self._queue: deque[Waiter[Result]] = deque()
        self._turn: dict[int, object] = {}  # by process: who has it
        self._waking = False

    def _settle(self, send: Waiter[Result]) -> Result:
        try:
            self._queue.append(send)
            if self._waking:
                send.asleep.acquire(timeout=NAP)
            while not send.settled and not self._took_turn(send):
                send.asleep.acquire(timeout=NAP)
        finally:
            if not send.settled:
                _take_out(self._queue, send)
            self._wake_after(send)
        if send.result is None:
            raise send.error or AssertionError("settled without a result")
        return send.result

    def _took_turn(self, mine: Waiter[Result]) -> bool:
        """False if it is another's."""
        process = os.getpid()
        try:
            if self._turn.setdefault(process, mine) is not mine:
                return False
            if not mine.settled:
                self._settle_queue(mine)
            return True
        finally:
            try:
                if self._turn[process] is mine:
                    del self._turn[process]
            except KeyError:
                pass

    def _settle_queue(self, mine: Waiter[Result]) -> None:
        queued = list(self._queue)
        sends = [send for send in queued if not send.settled]
        self._waking = len(sends) > 1
        for send, neighbour in itertools.pairwise([mine, *(s for s in sends if s is not mine)]):
            send.neighbour = neighbour
        self._do_all(sends)
        for send in queued:
            _take_out(self._queue, send)

    def _wake_after(self, send: Waiter[Result]) -> None:
        if send.neighbour is not None:
            send.neighbour.wake()
            return
        self._waking = False
        self._wake_first()

    def _wake_first(self) -> None:
        if self._queue:
            # It may be taken by another's turn between a look and a grasp.
            with contextlib.suppress(IndexError):
                self._queue[0].wake()

    def _settle_all(self, waiting: Sequence[Waiter[Result]]) -> None:
        """Give each its result or its error; what is raised, all others are told."""
        raise NotImplementedError

    def _do_all(self, waiting: Sequence[Waiter[Result]]) -> None:
        try:
            self._settle_all(waiting)
        except BaseException as error:
            for each in waiting:
                if not each.settled:
                    each.error = _told(error)
            # Whose turn it is hears of its own like the others: that may have been stored before the error.
            if not isinstance(error, BrookError):
                raise


class GroupCommit(Turns[list[int]]):
    def __init__(self, append: Callable[[list[Run]], list[int]], process: str = "") -> None:
        super().__init__()
        self._append = append
        self._process = process

    def one(self, topic: int, body: Body, extra: Extra | None) -> int:
        """Store a message; its offset."""
        me, process = object(), os.getpid()
        try:
            if not self._queue and not self._waking and self._turn.setdefault(process, me) is me:
                return self._append([_lone(topic, body, extra, self._process)])[0]
        finally:
            try:
                if self._turn[process] is me:
                    del self._turn[process]
                    self._wake_first()
            except KeyError:
                pass
        return self._settle(_SendOne(topic, body, extra))[0]

    def runs(self, runs: Sequence[Run]) -> list[int]:
        """Store the runs; the first offset of each."""
        return self._settle(_SendRuns(runs)) if runs else []

    def _settle_all(self, waiting: Sequence[_Send]) -> None:
        _commit(waiting, self._append, self._process)


def _take_out(queue: deque[Waiter[Result]], waiter: Waiter[Result]) -> None:
    try:
        queue.remove(waiter)
    except ValueError:  # another has
        return


def _commit(sends: Sequence[_Send], append: Callable[[list[Run]], list[int]], process: str) -> None:
    parts = _packed(sends, process)
    try:
        firsts = iter(append([run for _, runs in parts for run in runs]))
    except _OF_ONE as error:
        # Nothing was stored; the others must not suffer.
        if len(sends) == 1:
            sends[0].error = error
        else:
            for send in sends:
                _commit([send], append, process)
        return
    for theirs, runs in parts:
        offsets = list(itertools.islice(firsts, len(runs)))
        if isinstance(theirs[0], _SendRuns):
            theirs[0].result = offsets
        else:
            for offset, one in enumerate(theirs, offsets[0]):
                one.result = [offset]


def _packed(sends: Sequence[_Send], process: str) -> list[tuple[list[_Send], list[Run]]]:
    """Those who send, with their runs: the single messages of a topic together."""
    by_topic: dict[int, list[_SendOne]] = {}
    parts: list[tuple[list[_Send], list[Run]]] = []
    for send in sends:
        if isinstance(send, _SendOne):
            by_topic.setdefault(send.topic, []).append(send)
        elif isinstance(send, _SendRuns):
            parts.append(([send], signed(send.runs, process, [send.thread])))
    for topic, ones in by_topic.items():
        runs = pack(topic, [one.body for one in ones], [one.extra for one in ones])
        parts.append(([*ones], signed(runs, process, [one.thread for one in ones])))
    return parts


def _lone(topic: int, body: Body, extra: Extra | None, process: str) -> Run:
    extras = json.dumps([extra]) if extra else None
    return Run(topic, 1, body, None, extras, _sender(process, threading.current_thread().name))


def signed(runs: Sequence[Run], process: str, threads: list[str]) -> list[Run]:
    """The runs with who sent them: one thread all of them, or one each message."""
    if len(set(threads)) == 1:
        sender = _sender(process, threads[0])
        return [run._replace(sender=sender) for run in runs]
    names = iter(threads)
    return [run._replace(sender=json.dumps([process, *itertools.islice(names, run.messages)])) for run in runs]


@functools.lru_cache(maxsize=1000)
def _sender(process: str, thread: str) -> str:
    return json.dumps([process, thread])


def _told(error: BaseException) -> BrookError:
    """What those are told, each in a thread of its own, whose messages were in the same commit."""
    if isinstance(error, BrookError):
        told = type(error)(*error.args)
    else:
        told = StoreFailed(f"the thread that was committing for all was stopped by {error!r}: look before resending")
    told.__cause__ = error
    return told

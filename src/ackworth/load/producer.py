"""A producer: sends its messages at its pace and within its window, and records every one of them.

A message is recorded as sent before it is handed to the driver, and its outcome after the driver has
said so. Whoever kills this process can therefore only turn an outcome into an unanswered message.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ackworth.driver.contract import TIMED_OUT, Answers, ConnectionLost, Int64s, Outgoing, Sender, answered
from ackworth.history.spool import Spool
from ackworth.load.body import Bodies
from ackworth.load.pacing import Pace
from ackworth.model.clock import SECOND, Clock
from ackworth.model.outcome import Outcome

RECONNECT_EVERY = SECOND // 10
NEVER = 1 << 62


@dataclass(frozen=True, kw_only=True)
class Quota:
    """What a producer has to send in a phase; after a restart, what is left of it."""

    base: int  # the phase's first seq: the pace counts from here
    first: int  # the next seq to be sent
    last: int  # one past the last seq


class Producer:
    def __init__(
        self,
        *,
        producer: int,
        connect: Callable[[], Sender],
        sent: Spool,
        outcomes: Spool,
        bodies: Bodies,
        topics: Int64s,  # indexes of those that it sends to, in turn
        sizes: Callable[[int], Int64s],
        pace: Pace,
        quota: Quota,
        window: int,
        batch: int,
        patience: int,
        clock: Clock,
    ) -> None:
        self.producer = producer
        self._connect, self._sent, self._outcomes, self._bodies = connect, sent, outcomes, bodies
        self._topics, self._sizes, self._pace, self._quota = topics, sizes, pace, quota
        self._window, self._batch, self._patience, self._clock = window, batch, patience, clock
        self._next = quota.first
        self._pending = _Pending(window)
        self._sender: Sender | None = None
        self._connect_at = self._check_at = self._answered_at = 0
        self._ignored = False  # the broker took messages and never answered: that it takes more proves nothing
        self.stopping = False
        self.trouble: str | None = "not connected yet"  # why its messages are not answered; None if they are

    @property
    def sending(self) -> bool:
        """Whether there is still something to send."""
        return not self.stopping and self._next < self._quota.last

    @property
    def finished(self) -> bool:
        return not self.sending and not len(self._pending)

    def step(self, wait: float) -> bool:
        """Send what is due and fits, take what was answered; False if there was nothing to do."""
        try:
            return self._step(wait)
        except ConnectionLost as lost:
            self.trouble, self._ignored = str(lost), lost.reason == TIMED_OUT
            self._record(lost.answers)
            self._lose_connection(lost.reason)
            return True

    def _step(self, wait: float) -> bool:
        if self._sender is None and not self._reconnect():
            return False
        assert self._sender is not None
        count = self._allowed()
        if count:
            self._send(self._sender, count)
        answers = self._sender.answers(0 if count else wait)
        if len(answers):
            self.trouble, self._ignored = None, False
        self._record(answers)
        self._check_patience()
        return bool(count or len(answers))

    def _check_patience(self) -> None:
        now = self._clock.now()
        if not len(self._pending) or now < self._check_at:
            return
        self._check_at = now + self._patience // 10
        if now - max(self._pending.oldest(), self._answered_at) > self._patience:
            raise ConnectionLost("no answer in time", TIMED_OUT)

    def _allowed(self) -> int:
        wanted = self._wanted()
        return wanted if self._pending.room() >= wanted else 0

    def _wanted(self) -> int:
        """How many to send at once. A full batch is worth waiting for, unless the pace or the end makes it small."""
        if not self.sending:
            return 0
        due = self._quota.base + self._pace.due(self._clock.now()) - self._next
        return max(0, min(self._batch, due, self._quota.last - self._next))

    @property
    def connection(self) -> Sender | None:
        return self._sender

    def next_at(self) -> int:
        """When there will be something to do; if only an answer can tell, never."""
        if self._sender is None:
            return self._connect_at
        if not self.sending or self._pending.room() < self._wanted():
            return NEVER
        return self._pace.next_at(self._next - self._quota.base, self._clock.now())

    def _send(self, sender: Sender, count: int) -> None:
        first = self._next
        topics = self._topics[np.arange(first, first + count) % len(self._topics)]
        sizes = self._sizes(count)
        now = self._clock.now()
        late = self._pace.late(first - self._quota.base, count, now)
        bodies = self._bodies.build(self.producer, topics, first, sizes, now)
        self._sent.append(
            count, producer=self.producer, topic=topics, seq=np.arange(first, first + count), t=now, late=late
        )
        self._pending.add(first, count, now, late)
        self._next += count
        sender.send(Outgoing(first, topics, bodies, sizes))

    def _record(self, answers: Answers) -> None:
        if not len(answers):
            return
        now = self._answered_at = self._clock.now()
        t_sent, late = self._pending.settle(answers.seqs)
        self._outcomes.append(
            len(answers),
            producer=self.producer,
            seq=answers.seqs,
            outcome=answers.outcomes,
            t=now,
            latency=now - t_sent,
            late=late,
            reason=answers.reasons,
        )

    def _reconnect(self) -> bool:
        if self._clock.now() < self._connect_at:
            return False
        self._connect_at = self._clock.now() + RECONNECT_EVERY
        self._sender = self._connect()
        if not self._ignored:
            self.trouble = None
        return True

    def _lose_connection(self, reason: int) -> None:
        self._record(answered(self._pending.seqs(), Outcome.UNKNOWN, reason))
        self.close()

    def close(self) -> None:
        sender, self._sender = self._sender, None
        if sender is not None:
            sender.close()


class _Pending:
    """The messages that are sent and not answered: a ring of twice the window, indexed by seq."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._size = 1 << (2 * window - 1).bit_length()
        self._t = np.zeros(self._size, np.int64)
        self._late = np.zeros(self._size, np.int64)
        self._open = np.zeros(self._size, bool)
        self._low = self._high = 0  # every open seq lies in [low, high)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def room(self) -> int:
        """How many more may be sent: the window's rest, unless one straggler blocks the ring."""
        if self._high - self._low > self._size - self._window:
            self._advance()
        return min(self._window - self._count, self._size - (self._high - self._low))

    def add(self, first: int, count: int, t: int, late: Int64s | int) -> None:
        if not self._count:
            self._low = first
        slots = np.arange(first, first + count) & (self._size - 1)
        self._t[slots], self._late[slots], self._open[slots] = t, late, True
        self._high = first + count
        self._count += count

    def settle(self, seqs: Int64s) -> tuple[Int64s, Int64s]:
        """These are answered; when they were sent, and how late."""
        slots = seqs & (self._size - 1)
        self._open[slots] = False
        self._count -= len(seqs)
        return self._t[slots], self._late[slots]

    def seqs(self) -> Int64s:
        span: Int64s = np.arange(self._low, self._high)
        waiting: Int64s = span[self._open[span & (self._size - 1)]]
        return waiting

    def oldest(self) -> int:
        """When the oldest of them was sent."""
        self._advance()
        return int(self._t[self._low & (self._size - 1)])

    def _advance(self) -> None:
        waiting = self.seqs()
        self._low = int(waiting[0]) if len(waiting) else self._high

"""Handlers: a function is called with batches until the consumer is stopped.

1. Each thread claims a batch, calls the handler and settles the batch: acked if the handler returns, tried
   again later if it raises or returns a Refusal. Where the thread goes on, the ack and the claim of its next batch
   are one transaction, which it shares with the threads that are as far.
2. A keeper thread renews the leases of the batches that are being handled. One that has been with the
   handler for longer than the time-out is refused in its place, so that others get it; what the handler
   says of it afterwards is not heard. The handler's thread is busy until it returns: nobody can stop it.
3. Whoever takes a batch off the list of those that are being handled is the one that settles it (see `handling`). If
   the database does not let it, it tries again: what was handled must not come again for that.
4. Stopping lets the handlers finish for a while and hands back what they have not finished by then.
"""

import contextlib
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from brook import workers
from brook.alerts import Alert, Alerts, Kind
from brook.errors import BrookError, Closed, LeaseLost, Refused
from brook.handling import Handled, Handling
from brook.model import Batch, Message, Refusal
from brook.receiving import Receiver, Wanted
from brook.settings import MAX_AGE
from brook.workers import Handler, Workers, complain, log, until_done


@dataclass(frozen=True)
class Manner:
    """How a consumer consumes."""

    batch: int
    ladder: Sequence[float]
    timeout: float  # seconds that a handler may take for a batch
    slow: float  # seconds after which it is worth an alert
    upkeep: float  # seconds between two looks of the keeper


class Consumer:
    """Calls its handler from threads of its own; with no threads, when step() and tend() are called."""

    def __init__(
        self,
        receiver: Receiver,
        handler: Handler,
        group: str,
        topics: Sequence[str] | None,
        threads: int,
        manner: Callable[[], Manner],  # asked for each batch: settings change
        clock: Callable[[], float],
        alerts: Alerts,
    ) -> None:
        self.group = group
        self._receiver = receiver
        self._handler = handler
        self._topics = topics
        self._manner = manner
        self._clock = clock
        self._alerts = alerts
        self._handling = Handling()
        self._workers = Workers(f"brook-{group}", threads, self.work)
        self._stopped = threading.Event()  # nobody waits for the handlers any more
        self._keeper = threading.Thread(target=self._keep, name=f"brook-{group}-keeper", daemon=True)

    def __call__(self, messages: list[Message]) -> Refusal | None:
        return self._handler(messages)

    def start(self) -> None:
        self._workers.start()
        if self._workers.threads:
            self._keeper.start()

    def tell_to_stop(self) -> None:
        """Claim nothing from here on."""
        self._workers.tell_to_stop()

    @property
    def is_calling(self) -> bool:
        """Whether it is asked by its handler."""
        return self._workers.is_one_calling

    def stop(self, grace: float = 10.0) -> None:
        """Let the handlers finish for so many seconds; hand back what they have not.

        If one of them says so, it is not waited for, and its batch is acked when it returns.
        """
        self._workers.stop(grace)
        self._stopped.set()
        here = threading.current_thread().name if self.is_calling else None
        for handled in self._handling.take_all_but(here):
            self._receiver.hand_back(handled.batch)
            log.warning("group %r: stopped with %d messages unfinished: handed back", self.group, len(handled.batch))

    def step(self) -> bool:
        """Handle one batch; False if there was none."""
        batch = self._receiver.receive(self._wanted(), wait=0.0)
        if batch and (done := self._handle(batch)):
            self._ack(done)
        return bool(batch)

    def work(self) -> bool:
        """Handle batches until there are no more, or it is told to stop; False if there were none."""
        batch: Batch | None = self._receiver.receive(self._wanted(), wait=0.0)
        found = bool(batch)
        while batch:
            batch = self._next(self._handle(batch))
        return found

    def _next(self, done: Handled | None) -> Batch | None:
        """Ack what is done, and claim unless it is told to stop."""
        stopping = self._workers.stopping.is_set()
        if done is None:
            return None if stopping else self._receiver.receive(self._wanted(), wait=0.0)
        if stopping:
            self._ack(done)
            return None
        try:
            return self._receiver.ack_and_receive(done.batch, self._wanted(), partial(self._alert_lost, done))
        except BrookError as error:
            self._ack_after(error, done)
            raise

    def _handle(self, batch: Batch) -> Handled | None:
        """The batch if it is to be acked; None if it is settled already."""
        assert batch.claimed is not None, "what has messages was claimed"
        receipt = batch.claimed.receipt
        self._handling.add(receipt, Handled(batch, self._clock(), threading.current_thread().name))
        try:
            refusal = self._call(batch)
        except BaseException:
            self._handling.take(receipt)  # nobody renews it any more
            raise
        handled = self._handling.take(receipt)
        if handled is None:
            return None
        self._note_slow(handled)
        if refusal is None:
            return handled
        self._refuse(handled, refusal)
        return None

    def _wanted(self) -> Wanted:
        manner = self._manner()
        until = self._workers.stopping.is_set
        return Wanted(self.group, self._topics, manner.batch, len(manner.ladder) + 1, until, self._alert_buried)

    def tend(self) -> None:
        """Renew the leases of what is being handled, refuse what has been for too long, and say that we are there."""
        now, timeout = self._clock(), self._manner().timeout
        for receipt, handled in self._handling.all():
            self._note_slow(handled)
            if now - handled.since <= timeout:
                if lost := self._handling.renew(receipt, self._receiver.renew):
                    self._alert_lost(handled, lost)
            elif self._handling.take(receipt):
                cause = f"timed out: the handler took longer than {timeout:g} s"
                self._alert("timeout", handled, cause)
                self._refuse(handled, Refusal(cause))
        self._receiver.beat(self.group, len(self._workers.threads))

    def _call(self, batch: Batch) -> Refusal | None:
        try:
            answer: object = self._handler(list(batch.messages))
        except BaseException as error:
            if not (isinstance(error, Exception) or self.is_calling):
                raise  # a thread of ours goes on whatever it was, also after sys.exit()
            log.warning("group %r: the handler raised", self.group, exc_info=error)
            return Refusal(f"{type(error).__name__}: {error}")
        if answer is None or isinstance(answer, Refusal):
            return answer
        return Refusal(f"the handler returned {answer!r}: return None or a Refusal")

    def _ack(self, handled: Handled) -> None:
        self._guarded(handled, self._persist, self._receiver.ack, handled.batch)

    def _ack_after(self, error: BrookError, handled: Handled) -> None:
        """If nobody knows whether it was acked, what is not there any more is not lost."""
        if isinstance(error, Refused):
            self._ack(handled)
        else:
            with contextlib.suppress(LeaseLost):
                self._persist(self._receiver.ack, handled.batch)

    def _refuse(self, handled: Handled, refusal: Refusal) -> None:
        refused = len(handled.batch if refusal.messages is None else refusal.messages)
        log.warning("group %r: %s refused: %s", self.group, _are(refused), refusal.cause)
        self._guarded(handled, self._persist, self._put_off, handled, refusal)

    def _persist(self, act: Callable[..., None], *arguments: object) -> None:
        """A thread of ours tries again until the database lets it; who steps by hand is told."""
        if self.is_calling:
            until_done(f"group {self.group!r}", partial(act, *arguments), self._stopped)
        else:
            act(*arguments)

    def _put_off(self, handled: Handled, refusal: Refusal) -> None:
        ladder = self._manner().ladder
        dead = self._receiver.refuse(handled.batch, refusal.cause, refusal.messages, ladder)
        if dead:
            self._alert("dead", handled, f"{_are(dead)} dead: {refusal.cause}")

    def _guarded(self, handled: Handled, act: Callable[..., None], *arguments: object) -> None:
        """What others have got meanwhile is theirs; we go on."""
        try:
            act(*arguments)
        except LeaseLost as error:
            self._alert_lost(handled, error)

    def _alert_lost(self, handled: Handled, error: LeaseLost) -> None:
        """Once, however often it is noticed."""
        if not handled.lost:
            handled.lost = True
            self._alert("lost", handled, str(error))

    def _note_slow(self, handled: Handled) -> None:
        spent = self._clock() - handled.since
        if spent > self._manner().slow and not handled.noted:
            handled.noted = True
            self._alert("slow", handled, f"{_are(len(handled.batch))} still with the handler after {spent:g} s")

    def _alert_buried(self, count: int) -> None:
        """Their clients died with them, and cannot say so."""
        self._tell("dead", threading.current_thread().name, f"{_are(count)} dead: handed out and never acked")

    def _alert(self, kind: Kind, handled: Handled, text: str) -> None:
        self._tell(kind, handled.thread, text)

    def _tell(self, kind: Kind, thread: str, text: str) -> None:
        self._alerts.tell(Alert(kind, self.group, self._receiver.client, thread, text, self._clock()))

    def _keep(self) -> None:
        """Tend at once and then in time; the settings, which say how often, may change meanwhile."""
        tended = -math.inf
        while not self._stopped.wait(min(tended + self._manner().upkeep - time.monotonic(), MAX_AGE)):
            if time.monotonic() < tended + self._manner().upkeep:
                continue
            began = time.monotonic()
            try:
                self.tend()
                tended = began
            except Closed:
                return
            except Exception as error:
                complain(f"group {self.group!r}", error)
                self._stopped.wait(workers.PAUSE)  # leases do not wait for the next time


def _are(messages: int) -> str:
    return "1 message is" if messages == 1 else f"{messages} messages are"

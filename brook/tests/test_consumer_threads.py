"""Threads of a consumer: they share the work, survive what nobody expected, and stop in good order."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from brook import Alert, Brook, BrookError, Closed, Consumer, DatabaseLocked, Message, Refusal, StoreFailed


class Gate:
    """A handler that is in the middle of its work until it may leave."""

    def __init__(self) -> None:
        self.leave = threading.Event()
        self._entered = threading.Event()

    def __call__(self, messages: list[Message]) -> None:
        self._entered.set()
        assert self.leave.wait(60)

    def hold(self, mq: Brook) -> Consumer:
        """A consumer of one thread, which is in it."""
        consumer = mq.consumer("t", group="g", threads=1)(self)
        mq.send("t", b"x")
        assert self._entered.wait(60)
        return consumer


def waits_until(condition: Callable[[], bool]) -> None:
    while not condition():
        threading.Event().wait(0.002)


def test_threads_share_the_work_and_stop_when_done(url: str) -> None:
    got: list[int] = []
    with Brook(url, durability="off") as mq:

        @mq.consumer("t", group="g", threads=3, batch=7)
        def note(messages: list[Message]) -> None:
            got.extend(message.offset for message in messages)

        mq.append(["t"] * 500, [b"x"] * 500)
        waits_until(lambda: mq.lag("g") == 0)
    assert sorted(got) == list(range(500))


def test_stopping_waits_for_the_handlers(url: str) -> None:
    gate = Gate()
    with Brook(url) as other:
        mq = Brook(url)
        gate.hold(mq)
        closing = threading.Thread(target=mq.close, args=(60,))
        closing.start()
        gate.leave.set()
        closing.join()
        assert other.lag("g") == 0


def test_stopping_hands_back_what_takes_too_long(url: str) -> None:
    gate = Gate()
    with Brook(url) as other:
        mq = Brook(url)
        hang = gate.hold(mq)
        mq.close(grace=0)
        assert other.receive("g").redelivered == [True]
        gate.leave.set()
        for worker in hang._workers.threads:
            worker.join()
        assert other.lag("g") == 1  # the ack of who was too late is not heard


def test_an_error_that_nobody_expected_ends_no_thread(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of the workers, the keeper and the upkeep: each fails once, and goes on."""
    monkeypatch.setattr("brook.workers.PAUSE", 0.001)
    handled = threading.Event()
    with Brook(url, durability="off", lease=0.03) as mq:

        @mq.consumer("t", group="g", threads=1)
        def once(messages: list[Message]) -> Any:
            if not handled.is_set():
                handled.set()
                return Refusal("means nothing", [5])  # type: ignore[list-item]
            return None

        calls = {name: noted(monkeypatch, mq._store, name, failures=1) for name in ("beat", "client_states")}
        mq.send("t", b"x")
        assert handled.wait(60)
        waits_until(lambda: mq.lag("g") == 0 and all(len(each) > 1 for each in calls.values()))
    assert all(f"{name} is out of order" in caplog.text for name in calls)
    assert "Traceback" in caplog.text


@pytest.mark.parametrize("kind", ["consumer", "listener"])
def test_a_handler_that_exits_ends_no_thread(url: str, kind: str) -> None:
    got: list[int] = []

    def leave(messages: list[Message]) -> None:
        got.append(messages[0].offset)
        sys.exit("enough")

    with Brook(url, durability="off") as mq:
        if kind == "consumer":
            mq.consumer("t", group="g", threads=1, batch=1, ladder=[])(leave)
        else:
            mq.listener("t", batch=1)(leave)
        mq.append(["t"] * 2, [b"x"] * 2)
        waits_until(lambda: len(got) == 2)
        if kind == "consumer":
            waits_until(lambda: mq.lag("g") == 0)
            assert [letter.cause for letter in mq.dead("g")] == ["SystemExit: enough"] * 2


def noted(
    monkeypatch: pytest.MonkeyPatch, store: Any, name: str, failures: int = 0, error: BrookError | None = None
) -> list[str]:
    """A list that grows with each call of the store's method, of which the first so many raise."""
    right, calls = getattr(store, name), list[str]()

    def method(*arguments: object, **options: object) -> object:
        calls.append(name)
        if len(calls) <= failures:
            raise error or RuntimeError(f"{name} is out of order")
        return right(*arguments, **options)

    monkeypatch.setattr(store, name, method)
    return calls


def test_leases_are_renewed_while_stopping_waits(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()
    mq = Brook(url, durability="off", lease=0.03)
    work = gate.hold(mq)
    closing = threading.Thread(target=mq.close, args=(60,))
    closing.start()
    assert work._workers.stopping.wait(60)
    renewals = noted(monkeypatch, mq._store, "renew")
    waits_until(lambda: len(renewals) > 2)
    gate.leave.set()
    closing.join()


def test_a_lease_that_gets_shorter_is_kept_at_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keeper may not sleep for a third of the lease that was."""
    gate = Gate()
    with Brook(url, durability="off") as mq:
        gate.hold(mq)
        renewals = noted(monkeypatch, mq._store, "renew")
        mq.set("lease", 1.0)
        end = time.monotonic() + mq.settings.lease + 10
        waits_until(lambda: len(renewals) > 1 or time.monotonic() > end)
        gate.leave.set()
    assert len(renewals) > 1


def test_a_keeper_that_failed_does_not_wait_for_its_next_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """That would be in a third of the lease, and the lease may be over before it has succeeded."""
    monkeypatch.setattr("brook.workers.PAUSE", 0.001)
    with Brook(url, durability="off") as mq:
        beats = noted(monkeypatch, mq._store, "beat", failures=2, error=DatabaseLocked("busy"))
        mq.consumer("t", group="g", threads=1)(lambda messages: None)
        end = time.monotonic() + mq.settings.lease / 4
        waits_until(lambda: len(beats) > 2 or time.monotonic() > end)
    assert len(beats) > 2


@pytest.mark.parametrize("answer", [None, Refusal("no good")], ids=["acked", "refused"])
def test_what_was_handled_does_not_come_again_because_the_database_was_locked(
    url: str, monkeypatch: pytest.MonkeyPatch, answer: Refusal | None
) -> None:
    """Neither along with the next claim, nor when it is tried again alone; and it may be unknown whether it was."""
    monkeypatch.setattr("brook.workers.PAUSE", 0.001)
    got, alerts = list[int](), list[Alert]()
    with Brook(url, durability="off", lease=5, ladder=[3600], on_alert=alerts.append) as mq:

        @mq.consumer("t", group="g", threads=1, batch=1)
        def note(messages: list[Message]) -> Refusal | None:
            got.append(messages[0].offset)
            if len(got) == 1:
                noted(monkeypatch, mq._store, "ack_and_claim", failures=1, error=StoreFailed("nobody knows"))
                for settling in ("ack", "settle"):
                    noted(monkeypatch, mq._store, settling, failures=1, error=DatabaseLocked("busy"))
            return answer

        mq.append(["t"] * 3, [b"x"] * 3)
        waits_until(lambda: len(got) >= 3 and [s.claimed for s in mq.group_states()] == [0])
    assert (got, alerts) == ([0, 1, 2], [])


def test_what_is_done_meanwhile_is_not_lost(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is acked after the keeper has looked at what is being handled, and before it renews it."""
    gate, alerts = Gate(), list[Alert]()
    with Brook(url, durability="off", on_alert=alerts.append) as mq:
        consumer, renew = gate.hold(mq), mq._store.renew

        def late(receipt: int, until: float) -> int:
            gate.leave.set()
            waits_until(lambda: mq.lag("g") == 0)
            return renew(receipt, until)

        monkeypatch.setattr(mq._store, "renew", late)
        consumer.tend()
    assert alerts == []


def test_what_is_handed_back_is_not_renewed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a keeper that was about to: others would have to wait for the lease to be over."""
    gate = Gate()
    with Brook(url, durability="off") as other, Brook(url, durability="off") as mq:
        consumer, renew = gate.hold(mq), mq._store.renew
        stopping = threading.Thread(target=consumer.stop, args=(0,))

        def late(receipt: int, until: float) -> int:
            if until and not stopping.ident:
                stopping.start()
                stopping.join(0.2)  # it has to wait for us: this cannot be waited for
            return renew(receipt, until)

        monkeypatch.setattr(mq._store, "renew", late)
        consumer.tend()
        stopping.join()
        assert other.receive("g").redelivered == [True]
        gate.leave.set()


def test_a_choosy_consumer_stops_also_while_it_passes_messages_over(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    handled: list[int] = []
    with Brook(url, durability="off") as mq:

        @mq.consumer("t", group="g", threads=0, batch=1, tags=["eu"])
        def note(messages: list[Message]) -> None:
            handled.extend(message.offset for message in messages)

        mq.append(["t"] * 5, [b"x"] * 5)
        mq.send("t", b"x", tags=["eu"])
        ack = mq._store.ack

        def told(receipts: Any, now: float) -> list[int]:
            note.tell_to_stop()
            return ack(receipts, now)

        monkeypatch.setattr(mq._store, "ack", told)
        assert not note.work()
        assert (handled, mq.lag("g")) == ([], 5)


def test_the_grace_is_for_all_together(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, leave, graces = threading.Semaphore(0), threading.Event(), list[float]()

    def hang(messages: list[Message]) -> None:
        entered.release()
        assert leave.wait(60)

    mq = Brook(url, durability="off")
    consumers = [mq.consumer("t", group=group, threads=1)(hang) for group in "abc"]
    mq.send("t", b"x")
    assert all(entered.acquire(timeout=60) for _ in consumers)
    stop = Consumer.stop

    def noting(consumer: Consumer, grace: float) -> None:
        graces.append(grace)
        stop(consumer, grace)

    monkeypatch.setattr(Consumer, "stop", noting)
    mq.close(grace=0.5)
    assert graces[0] > 0 and graces[1:] == [0, 0]
    leave.set()


@pytest.mark.parametrize("kind", ["consumer", "listener"])
def test_a_handler_may_close_the_queue(url: str, kind: str) -> None:
    """And what it has is done once it returns."""
    with Brook(url, durability="off") as other:
        mq = Brook(url, durability="off")
        before = set(threading.enumerate())

        def end(messages: list[Message]) -> None:
            mq.close(grace=60)
            assert mq.topics() == {"t": 1}  # it is open until the handler is through

        if kind == "consumer":
            mq.consumer("t", group="g", threads=2)(end)
        else:
            other.subscribe("g")
            mq.listener("t")(end)
        other.send("t", b"x")
        waits_until(lambda: is_closed(mq))
        waits_until(lambda: set(threading.enumerate()) <= before)
        assert other.lag("g") == (0 if kind == "consumer" else 1)


def is_closed(mq: Brook) -> bool:
    try:
        mq.topics()
    except Closed:
        return True
    return False


def test_a_handler_may_stop_its_consumer(url: str) -> None:
    with Brook(url, durability="off") as mq:

        @mq.consumer("t", group="g", threads=1, batch=1)
        def first(messages: list[Message]) -> None:
            first.stop(grace=0)

        mq.append(["t"] * 2, [b"x"] * 2)
        for thread in first._workers.threads:
            thread.join()
        assert mq.lag("g") == 1, "either it was not acked, or another was begun"


def test_run_ends_on_a_signal(url: str) -> None:
    with Brook(url) as mq:

        @mq.consumer("t", group="g", threads=1)
        def end(messages: list[Message]) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

        mq.send("t", b"x")
        mq.run()
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL

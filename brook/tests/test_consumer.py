"""Handlers: acks, refusals, the ladder, leases, time-outs, order, stopping. The clock stands still unless moved."""

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from brook import LADDER, BadSetting, Brook, Closed, Consumer, Message, MessageId, Refusal


def send(mq: Brook, *keys: str | None) -> None:
    for number, key in enumerate(keys):
        mq.send("t", b"%d" % number, key=key)


def drain(consumer: Consumer) -> None:
    while consumer.step():
        pass


def test_a_handler_gets_everything_once(mq: Brook) -> None:
    got: list[int] = []

    @mq.consumer("t", group="g", threads=0, batch=4)
    def note(messages: list[Message]) -> None:
        got.append(len(messages))

    send(mq, *[None] * 10)
    drain(note)
    assert got == [4, 4, 2]
    assert mq.lag("g") == 0


def test_the_default_ladder_is_climbed_exactly(mq: Brook, clock: Any) -> None:
    times: list[tuple[float, int]] = []

    @mq.consumer("t", group="g", threads=0)
    def fail(messages: list[Message]) -> None:
        times.append((clock.now, messages[0].attempts))
        raise ValueError("no good")

    send(mq, None)
    expected, now = [(1000.0, 1)], 1000.0
    drain(fail)
    for attempt, delay in enumerate(LADDER, 2):
        clock.now = now + delay - 0.001
        drain(fail)
        clock.now = now = now + delay
        drain(fail)
        expected.append((now, attempt))
    assert LADDER[:5] == (10, 20, 30, 60, 120) and LADDER[-4:] == (600, 1200, 1800, 3600) and len(LADDER) == 16
    assert times == expected
    clock.now += 1e9
    assert not fail.step()
    (letter,) = mq.dead("g")
    assert (letter.topic, letter.offset, letter.attempts, letter.cause) == ("t", 0, 17, "ValueError: no good")
    assert letter.died == now
    assert mq.lag("g") == 0


def test_a_refusal_may_name_some(mq: Brook, clock: Any) -> None:
    got: list[list[int]] = []

    @mq.consumer("t", group="g", threads=0, ladder=[5])
    def refuse_odd(messages: list[Message]) -> Refusal | None:
        got.append([message.offset for message in messages])
        return Refusal("odd", [message for message in messages if message.offset % 2])

    send(mq, *[None] * 5)
    drain(refuse_odd)
    assert mq.lag("g") == 2
    clock.now += 5
    drain(refuse_odd)
    assert got == [[0, 1, 2, 3, 4], [1, 3]]
    assert [(letter.offset, letter.attempts, letter.cause) for letter in mq.dead("g")] == [(1, 2, "odd"), (3, 2, "odd")]


@pytest.mark.parametrize("answer", [3, [], True, "refused"])
def test_what_is_neither_none_nor_a_refusal_refuses_the_batch(mq: Brook, answer: Any) -> None:
    consumer = mq.consumer("t", group="g", threads=0, ladder=[])(lambda messages: answer)
    send(mq, None)
    drain(consumer)
    (letter,) = mq.dead("g")
    assert letter.cause == f"the handler returned {answer!r}: return None or a Refusal"


def test_the_cause_of_a_refusal_may_be_an_error(mq: Brook) -> None:
    error: Any = ValueError("no good")
    consumer = mq.consumer("t", group="g", threads=0, ladder=[])(lambda messages: Refusal(error))
    send(mq, None)
    drain(consumer)
    assert mq.dead("g")[0].cause == "no good"


def test_dead_letters_are_replayed_and_dropped(mq: Brook) -> None:
    seen: list[int] = []

    @mq.consumer("t", group="g", threads=0, ladder=[])
    def fail(messages: list[Message]) -> Refusal:
        seen.extend(message.attempts for message in messages)
        return Refusal("no")

    send(mq, None, None)
    drain(fail)
    first, second = mq.dead("g")
    assert mq.replay_dead("g", [first]) == 1
    assert mq.replay_dead("g", [first]) == 0
    drain(fail)
    assert seen == [1, 1, 1]
    assert mq.drop_dead("g", [second, MessageId("t", 99)]) == 1
    assert [letter.offset for letter in mq.dead("g")] == [0]


def test_pulled_batches_can_be_refused_too(mq: Brook, clock: Any) -> None:
    mq.subscribe("g")
    send(mq, None, None)
    batch = mq.receive("g")
    mq.refuse(batch, "later", list(batch.messages)[1:])
    assert not mq.receive("g")
    clock.now += LADDER[0]
    again = mq.receive("g")
    assert (again.offsets, again.redelivered) == ([1], [True])
    mq.refuse(mq.receive("g"), "nothing to refuse")


def test_leases_are_renewed_while_the_handler_works(mq: Brook, url: str, clock: Any) -> None:
    with Brook(url, clock=clock) as other:

        @mq.consumer("t", group="g", threads=0, timeout=1000)
        def slow(messages: list[Message]) -> None:
            for _ in range(5):
                clock.now += 50
                slow.tend()
                assert not other.receive("g")

        send(mq, None)
        assert slow.step()
        assert mq.lag("g") == 0


def test_without_renewal_others_get_it(mq: Brook, url: str, clock: Any, caplog: pytest.LogCaptureFixture) -> None:
    with Brook(url, clock=clock) as other:

        @mq.consumer("t", group="g", threads=0)
        def slow(messages: list[Message]) -> None:
            clock.now += 61
            assert other.receive("g").redelivered == [True]

        send(mq, None)
        assert slow.step()
        assert "1 of 1 messages of group 'g' have gone to others" in caplog.text


def test_a_handler_that_hangs_is_timed_out(mq: Brook, clock: Any) -> None:
    again: list[int] = []

    @mq.consumer("t", group="g", threads=0, timeout=30, ladder=[10])
    def hang(messages: list[Message]) -> None:
        again.append(messages[0].attempts)
        clock.now += 31
        hang.tend()  # now it is others'; that the handler returns is not heard

    send(mq, None)
    assert hang.step()
    assert mq.lag("g") == 1
    clock.now += 10
    assert hang.step()
    assert again == [1, 2]
    (letter,) = mq.dead("g")
    assert letter.cause == "timed out: the handler took longer than 30 s"


def test_keys_stay_in_order_over_retries(mq: Brook, clock: Any) -> None:
    """a1 fails twice; b goes on, a2 and a3 wait for a1, whatever the batches are."""
    handled: list[tuple[str | None, int]] = []
    failures = [0, 0]

    @mq.consumer("t", group="g", threads=0, batch=1, ladder=[10, 10], ordered=True)
    def handle(messages: list[Message]) -> Refusal | None:
        (message,) = messages
        if message.offset in failures:
            failures.remove(message.offset)
            return Refusal("busy")
        handled.append((message.key, message.offset))
        assert message.attempts == (3 if message.offset == 0 else 1)
        return None

    send(mq, "a", "b", "a", None, "b", "a")
    for _ in range(3):
        drain(handle)
        clock.now += 10
    assert handled == [("b", 1), (None, 3), ("b", 4), ("a", 0), ("a", 2), ("a", 5)]
    assert mq.lag("g") == 0


def test_without_the_option_keys_are_not_kept_in_order(mq: Brook, clock: Any) -> None:
    handled: list[int] = []

    @mq.consumer("t", group="g", threads=0, batch=1, ladder=[10])
    def handle(messages: list[Message]) -> Refusal | None:
        if messages[0].offset == 0 and messages[0].attempts == 1:
            return Refusal("busy")
        handled.append(messages[0].offset)
        return None

    send(mq, "a", "a")
    drain(handle)
    clock.now += 10
    drain(handle)
    assert handled == [1, 0]


def test_a_topic_that_is_closed_does_not_stop_the_others(mq: Brook) -> None:
    got: list[str] = []
    mq.append(["a", "b", "a", "b"], [b"x"] * 4)

    @mq.consumer(["a", "b"], group="g", threads=0, batch=1)
    def note(messages: list[Message]) -> None:
        got.extend(message.topic for message in messages)

    mq.set_rule("b", "closed")
    drain(note)
    assert got == ["a", "a"]
    mq.set_rule("b", "read-only")
    drain(note)
    assert got == ["a", "a", "b", "b"]


def test_tags_choose(mq: Brook) -> None:
    got: list[bytes] = []

    @mq.consumer("t", group="g", threads=0, batch=2, tags=["eu", "us"])
    def note(messages: list[Message]) -> None:
        got.extend(message.body for message in messages)

    for number, tags in enumerate([["eu"], [], ["asia"], ["asia"], ["x", "us"], []]):
        mq.send("t", b"%d" % number, tags=tags)
    drain(note)
    assert got == [b"0", b"4"]
    assert mq.lag("g") == 0


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
    entered, leave = threading.Event(), threading.Event()
    with Brook(url) as other:
        mq = Brook(url)

        @mq.consumer("t", group="g", threads=1)
        def work(messages: list[Message]) -> None:
            entered.set()
            assert leave.wait(60)

        mq.send("t", b"x")
        assert entered.wait(60)
        closing = threading.Thread(target=mq.close, args=(60,))
        closing.start()
        leave.set()
        closing.join()
        assert other.lag("g") == 0


def test_stopping_hands_back_what_takes_too_long(url: str) -> None:
    entered, leave = threading.Event(), threading.Event()
    with Brook(url) as other:
        mq = Brook(url)

        @mq.consumer("t", group="g", threads=1)
        def hang(messages: list[Message]) -> None:
            entered.set()
            assert leave.wait(60)

        mq.send("t", b"x")
        assert entered.wait(60)
        mq.close(grace=0)
        assert other.receive("g").redelivered == [True]
        leave.set()
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


def noted(monkeypatch: pytest.MonkeyPatch, store: Any, name: str, failures: int = 0) -> list[str]:
    """A list that grows with each call of the store's method, of which the first so many raise."""
    right, calls = getattr(store, name), list[str]()

    def method(*arguments: object) -> object:
        calls.append(name)
        if len(calls) <= failures:
            raise RuntimeError(f"{name} is out of order")
        return right(*arguments)

    monkeypatch.setattr(store, name, method)
    return calls


def test_leases_are_renewed_while_stopping_waits(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, leave = threading.Event(), threading.Event()
    mq = Brook(url, durability="off", lease=0.03)

    @mq.consumer("t", group="g", threads=1)
    def work(messages: list[Message]) -> None:
        entered.set()
        assert leave.wait(60)

    mq.send("t", b"x")
    assert entered.wait(60)
    closing = threading.Thread(target=mq.close, args=(60,))
    closing.start()
    assert work._workers.stopping.wait(60)
    renewals = noted(monkeypatch, mq._store, "renew")
    waits_until(lambda: len(renewals) > 2)
    leave.set()
    closing.join()


def test_a_lease_that_gets_shorter_is_kept_at_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keeper may not sleep for a third of the lease that was."""
    entered, leave = threading.Event(), threading.Event()
    with Brook(url, durability="off") as mq:

        @mq.consumer("t", group="g", threads=1)
        def work(messages: list[Message]) -> None:
            entered.set()
            assert leave.wait(60)

        mq.send("t", b"x")
        assert entered.wait(60)
        renewals = noted(monkeypatch, mq._store, "renew")
        mq.set("lease", 1.0)
        end = time.monotonic() + mq.settings.lease + 10
        waits_until(lambda: len(renewals) > 1 or time.monotonic() > end)
        leave.set()
    assert len(renewals) > 1


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
    mq.close(grace=0.2)
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


def test_bad_settings(mq: Brook) -> None:
    with pytest.raises(BadSetting, match="threads=-1"):
        mq.consumer("t", group="g", threads=-1)
    with pytest.raises(BadSetting, match="batch=0"):
        mq.consumer("t", group="g", batch=0)
    with pytest.raises(BadSetting, match="timeout=0"):
        mq.consumer("t", group="g", timeout=0)

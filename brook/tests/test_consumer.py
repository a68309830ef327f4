"""Handlers: acks, refusals, the ladder, leases, time-outs, order. The clock stands still unless moved."""

from typing import Any

import pytest

from brook import LADDER, BadSetting, Brook, Consumer, Message, MessageId, Refusal


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
        assert "1 of 1 messages of group 'g' are this client's no more" in caplog.text


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


def test_bad_settings(mq: Brook) -> None:
    with pytest.raises(BadSetting, match="threads=-1"):
        mq.consumer("t", group="g", threads=-1)
    with pytest.raises(BadSetting, match="batch=0"):
        mq.consumer("t", group="g", batch=0)
    with pytest.raises(BadSetting, match="timeout=0"):
        mq.consumer("t", group="g", timeout=0)

"""Brook as an application sees it."""

import threading
from array import array
from collections.abc import Sequence
from typing import Any

import pytest

from brook import (
    BadMessage,
    BadSetting,
    BodyTooLarge,
    Brook,
    Closed,
    LeaseLost,
    MessageId,
    Outgoing,
    Piece,
    Run,
    StoreFailed,
    UnknownGroup,
    UnknownTopic,
)


def test_send_and_receive(url: str, clock: Any) -> None:
    with Brook(url, clock=clock) as mq:
        assert mq.send("a", b"one", key="k", tags=["x", "y"], properties={"p": "q"}) == MessageId("a", 0)
        assert mq.send("a", b"two") == ("a", 1)
        mq.subscribe("g")
        one, two = mq.receive("g").messages
    assert (one.topic, one.offset, one.body, one.key, one.tags) == ("a", 0, b"one", "k", ("x", "y"))
    assert (one.properties, one.sent, one.attempts) == ({"p": "q"}, 1000.0, 1)
    assert (two.offset, two.body, two.key, two.tags, two.properties) == (1, b"two", None, (), {})


def test_a_removed_queue_is_gone(url: str) -> None:
    with Brook(url) as mq:
        mq.send("a", b"one")
        mq.remove()
        with pytest.raises(Closed):
            mq.topics()
    with Brook(url) as mq:
        assert mq.topics() == {}


def test_columns_are_parallel(url: str) -> None:
    with Brook(url) as mq:
        a, b = mq.create_topics(["a", "b"])
        assert mq.append([a, "b", a, b], [b"1", bytearray(b"22"), memoryview(b"333"), b""]) == [0, 0, 1, 1]
        mq.subscribe("g")
        batch = mq.receive("g")
    assert len(batch) == 4
    assert batch.topics == [a, a, b, b]
    assert batch.offsets == [0, 1, 0, 1]
    assert batch.bodies == [b"1", b"333", b"22", b""]
    assert batch.redelivered == [False] * 4


def test_send_many_is_one_transaction(url: str) -> None:
    with Brook(url, auto_create=False) as mq:
        mq.create_topics(["a"])
        mq.subscribe("g")
        with pytest.raises(UnknownTopic, match="'b': no such topic"):
            mq.send_many([Outgoing("a", b"1"), Outgoing("b", b"2")])
        assert mq.lag("g") == 0
        assert mq.send_many([Outgoing("a", b"1"), Outgoing("a", b"2", key="k")]) == [("a", 0), ("a", 1)]
        assert mq.send_many([]) == []


def test_large_batches_are_cut_into_runs_and_stay_in_order(url: str) -> None:
    bodies = [b"%05d" % n * (n % 7 * 1000) for n in range(50)]
    with Brook(url) as mq:
        assert mq.append(["a"] * 50, bodies) == list(range(50))
        mq.subscribe("g")
        batch = mq.receive("g")
        assert len(batch.pieces) > 1
        assert batch.bodies == bodies


@pytest.mark.parametrize("size", [1_000, 10_000, 100_000, 1_000_000, 4 * 1024 * 1024])
def test_body_sizes(url: str, size: int) -> None:
    body = bytes(n % 251 for n in range(size))
    with Brook(url) as mq:
        mq.send("a", body)
        mq.subscribe("g")
        assert mq.receive("g").bodies == [body]


def test_too_large_a_body(url: str) -> None:
    with Brook(url, max_body=10) as mq:
        mq.subscribe("g")
        (a,) = mq.create_topics(["a"])
        for send in (
            lambda: mq.send("a", b"x" * 11),
            lambda: mq.append(["a", "a"], [b"x", b"x" * 11]),
            lambda: mq.append_runs([Run(a, 2, b"x" * 22)]),
        ):
            with pytest.raises(BodyTooLarge, match="11 bytes: a body may have 10"):
                send()
        assert mq.lag("g") == 0


def test_runs_that_do_not_fit_together(url: str) -> None:
    with Brook(url) as mq:
        (a,) = mq.create_topics(["a"])
        for run in (
            Run(a, 0, b""),
            Run(a, 2, b"xxx"),
            Run(a, 2, b"xxx", sizes=b"\1\0\0\0"),
            Run(a, 1, b"xx", sizes=b"\1\0\0\0"),
        ):
            with pytest.raises(BadMessage):
                mq.append_runs([run])
        with pytest.raises(BadMessage, match="1 topics for 2 bodies"):
            mq.append(["a"], [b"", b""])
        with pytest.raises(BadMessage, match="must have a name"):
            mq.send("", b"")
        with pytest.raises(UnknownTopic, match="99: no topic has this id"):
            mq.append([99], [b""])


@pytest.mark.parametrize("body", ["hello", None, 5, [1, 2], memoryview(b"abcd").cast("H"), memoryview(b"abcd")[::2]])
def test_a_body_is_bytes(url: str, body: Any) -> None:
    """Text was stored as such by SQLite, and nobody could receive what was behind it."""
    with Brook(url) as mq:
        (a,) = mq.create_topics("a")
        for send in (
            lambda: mq.send("a", body),
            lambda: mq.send_many([Outgoing("a", b"x"), Outgoing("a", body)]),
            lambda: mq.append_runs([Run(a, 1, body)]),
        ):
            with pytest.raises(BadMessage, match="a body must be bytes: encode it"):
                send()
        assert mq.tail("a") == []
        assert mq.send("a", array("B", b"bytes")).offset == 0
        assert mq.tail("a")[0].body == b"bytes"


@pytest.mark.parametrize(
    "labels",
    [
        {"key": 5},
        {"key": b"k"},
        {"key": "\ud800"},
        {"tags": "eu"},
        {"tags": [1]},
        {"tags": 5},
        {"properties": {"a": 1}},
        {"properties": {1: "a"}},
        {"properties": ["a"]},
    ],
)
def test_keys_tags_and_properties_are_text(url: str, labels: Any) -> None:
    with Brook(url) as mq:
        (a,) = mq.create_topics(["a"])
        for send in (
            lambda: mq.send("a", b"x", **labels),
            lambda: mq.send_many([Outgoing("a", b"x", **labels)]),
        ):
            with pytest.raises(BadMessage, match="give text in UTF-8, a list of text, and a mapping of text to text"):
                send()
        for extras in ("null", "[null, null]", '["k"]', '[["k", "eu", {}]]', "no JSON"):
            with pytest.raises(BadMessage, match=r"extras=|give text"):
                mq.append_runs([Run(a, 1, b"x", extras=extras)])
        mq.append_runs([Run(a, 1, b"x", extras='[["k", ["eu"], {}]]')])
        mq.send("a", b"x", tags={"eu"})
        assert [message.tags for message in mq.tail("a")] == [("eu",), ("eu",)]


@pytest.mark.parametrize("name", [5, None, "", "\ud800"])
def test_names_are_text(mq: Brook, name: Any) -> None:
    for use in (lambda: mq.create_topics([name]), lambda: mq.send(name, b"x"), lambda: mq.listen([name])):
        with pytest.raises(BadMessage, match="a topic must have a name"):
            use()
    with pytest.raises(BadSetting, match="group="):
        mq.subscribe(name)
    with pytest.raises(BadSetting, match="tags="):
        mq.subscribe("g", tags=[name])


def test_one_topic_needs_no_list_and_tags_do(mq: Brook) -> None:
    """A string is a list of letters to Python."""
    mq.create_topics("orders")
    assert list(mq.topics()) == ["orders"]
    mq.send("orders", b"x")
    mq.subscribe("g", "orders")
    assert mq.receive("g", "orders").bodies == [b"x"]
    mq.reset("g", "earliest", "orders")
    assert mq.lag("g") == 1
    with pytest.raises(BadSetting, match="tags='eu': give a list of words"):
        mq.subscribe("g", tags="eu")


def test_packed_runs_are_stored_as_they_are(url: str) -> None:
    with Brook(url) as mq:
        a, b = mq.create_topics(["a", "b"])
        data = memoryview(b"abcdef")
        assert mq.append_runs([Run(a, 2, data[:4]), Run(b, 1, data[4:]), Run(a, 1, data[:1])]) == [0, 0, 2]
        mq.subscribe("g")
        assert mq.receive("g").bodies == [b"ab", b"cd", b"a", b"ef"]


def test_redelivery_after_the_lease(url: str, clock: Any) -> None:
    with Brook(url, lease=10, clock=clock) as one, Brook(url, lease=10, clock=clock) as two:
        one.append(["a"] * 3, [b"0", b"1", b"2"])
        one.subscribe("g")
        late = one.receive("g", max_messages=2)
        clock.now += 9
        one.renew(late)
        clock.now += 9
        assert two.receive("g").offsets == [2]
        clock.now += 2
        again = two.receive("g", max_messages=1)
        assert (again.offsets, again.redelivered) == ([0], [True])
        with pytest.raises(LeaseLost, match="1 of 2 messages of group 'g'"):
            one.ack(late)
        two.ack(again)
        assert two.lag("g") == 1


def test_close_hands_back(url: str) -> None:
    with Brook(url) as two:
        with Brook(url) as one:
            one.send("a", b"x")
            one.subscribe("g")
            one.receive("g")
            assert not two.receive("g")
        assert two.receive("g").redelivered == [True]


def test_receive_waits_for_the_first_message(url: str) -> None:
    with Brook(url) as mq, Brook(url) as sender:
        mq.create_topics(["a"])
        mq.subscribe("g")
        assert not mq.receive("g")
        thread = threading.Thread(target=lambda: sender.send("a", b"x"))
        thread.start()
        assert mq.receive("g", wait=60).bodies == [b"x"]
        thread.join()


def test_an_empty_batch_can_be_acked(url: str) -> None:
    with Brook(url) as mq:
        mq.subscribe("g")
        empty = mq.receive("g")
        mq.ack(empty)
        mq.renew(empty)
        assert (len(empty), empty.bodies, list(empty.messages)) == (0, [], [])


def test_another_client_creates_topics(url: str) -> None:
    with Brook(url) as one, Brook(url, auto_create=False) as two:
        two.subscribe("g")
        one.send("late", b"x")
        (message,) = two.receive("g", ["late"]).messages
        assert message.topic == "late"
        assert two.send("late", b"y").offset == 1


def test_unknown_groups_and_settings(url: str) -> None:
    with Brook(url) as mq:
        with pytest.raises(UnknownGroup, match="'g': no such group: subscribe it first"):
            mq.receive("g")
        with pytest.raises(BadSetting, match="start='middle': give earliest, latest, an offset"):
            mq.subscribe("g", start="middle")  # type: ignore[arg-type]
        mq.send("t", b"x")
        mq.subscribe("g")
        for wrong in ({"max_messages": 0}, {"max_messages": "5"}, {"max_messages": 1.5}, {"wait": "5"}, {"wait": None}):
            with pytest.raises(BadSetting, match=f"{next(iter(wrong))}="):
                mq.receive("g", **wrong)  # type: ignore[arg-type]
        assert len(mq.receive("g")) == 1, "what was refused has claimed something"
    with pytest.raises(BadSetting, match="durability='high': give full, normal or off"):
        Brook(url, durability="high")  # type: ignore[arg-type]
    for option in ({"patience": "5"}, {"patience": -1}, {"client": 5}, {"client": ""}):
        with pytest.raises(BadSetting, match=f"{next(iter(option))}="):
            Brook(url, **option)  # type: ignore[arg-type]


def test_closed(url: str) -> None:
    mq = Brook(url)
    mq.close()
    mq.close()
    with pytest.raises(Closed):
        mq.send("a", b"x")


@pytest.mark.parametrize("step", ["read", "waiting_keys"])
def test_what_is_claimed_and_reaches_nobody_is_free_at_once(
    mq: Brook, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Otherwise nobody would have it, or anything else of an ordered topic, before the lease is over."""
    mq.subscribe("g", ordered=True)
    mq.send("t", b"x")

    def fail(*_: object) -> None:
        raise StoreFailed("gone")

    with monkeypatch.context() as patch, pytest.raises(StoreFailed):
        patch.setattr(mq._store, step, fail)
        mq.receive("g")
    assert mq.receive("g").offsets == [0]


def test_what_is_taken_from_us_while_we_read_it_is_no_error(mq: Brook, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reset comes between a claim and a look at the messages: what follows is handed out instead."""
    mq.subscribe("g")
    mq.send("t", b"x")
    read = mq._store.read

    def reset_before(receipts: Sequence[int]) -> list[list[Piece]]:
        monkeypatch.undo()
        mq.reset("g", "earliest")
        return read(receipts)

    monkeypatch.setattr(mq._store, "read", reset_before)
    batch = mq.receive("g")
    assert (batch.offsets, batch.redelivered) == ([0], [False])
    mq.ack(batch)

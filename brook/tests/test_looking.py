"""Start positions, resets, queries, tails and listeners."""

import json
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from brook import BadSetting, Brook, LeaseLost, Message, UnknownTopic


def time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def bodies(messages: list[Message]) -> list[bytes]:
    return [message.body for message in messages]


@pytest.fixture
def orders(mq: Brook, clock: Any) -> Brook:
    """Ten messages, one a second from 1000 on; in one run each."""
    for n in range(10):
        mq.send("orders", b"%d" % n, key=f"k{n % 3}", tags=["even"] if n % 2 == 0 else ["odd", "more"])
        clock.now += 1
    return mq


@pytest.mark.parametrize(
    ("start", "first"),
    [("earliest", 0), ("latest", 10), (4, 4), (99, 10), (time(1003.5), 4), (time(0), 0), (time(1e9), 10)],
)
def test_groups_start_anywhere(orders: Brook, start: Any, first: int) -> None:
    orders.subscribe("g", start=start)
    assert orders.receive("g").offsets == list(range(first, 10))


def test_reset(orders: Brook) -> None:
    orders.subscribe("g")
    late = orders.receive("g", max_messages=5)
    orders.reset("g", 7)
    with pytest.raises(LeaseLost):
        orders.ack(late)
    orders.ack(orders.receive("g"))
    assert orders.lag("g") == 0
    orders.reset("g", time(1008))
    assert orders.receive("g").offsets == [8, 9]
    orders.reset("g", "earliest", ["orders"])
    assert orders.lag("g") == 10
    with pytest.raises(UnknownTopic, match="'nowhere'"):
        orders.reset("g", "latest", ["nowhere"])
    with pytest.raises(BadSetting, match="position=-1"):
        orders.reset("g", -1)


def test_get(orders: Brook) -> None:
    message = orders.get("orders", 3)
    assert message is not None
    assert (message.body, message.key, message.sent, message.attempts) == (b"3", "k0", 1003.0, 0)
    assert orders.get("orders", 10) is None
    with pytest.raises(UnknownTopic):
        orders.get("nowhere", 0)


def test_query(orders: Brook) -> None:
    orders.append(["orders"] * 3, [b"a", b"b", b"c"])  # one run without keys
    assert bodies(orders.query("orders", key="k1")) == [b"1", b"4", b"7"]
    assert bodies(orders.query("orders", tag="more", limit=2)) == [b"1", b"3"]
    assert bodies(orders.query("orders", key="k0", tag="even")) == [b"0", b"6"]
    assert bodies(orders.query("orders", since=time(1007), until=time(1009))) == [b"7", b"8"]
    assert bodies(orders.query("orders", first=9)) == [b"9", b"a", b"b", b"c"]
    assert orders.query("orders", key='k"') == orders.query("orders", key="k") == []


def test_query_goes_through_more_than_one_portion(mq: Brook) -> None:
    for n in range(100):
        mq.send("t", b"%d" % n, key="last" if n == 99 else "k")
    assert bodies(mq.query("t", key="last")) == [b"99"]
    assert len(mq.query("t", limit=1000)) == 100


def test_tail(orders: Brook) -> None:
    assert bodies(orders.tail("orders", 3)) == [b"7", b"8", b"9"]
    assert len(orders.tail("orders", 100)) == 10


def test_every_listener_gets_everything_from_the_end_on(orders: Brook, url: str) -> None:
    with Brook(url) as other:
        listeners = [orders.listen("orders"), other.listen(["orders"])]
        assert [len(listener.receive()) for listener in listeners] == [0, 0]
        orders.send("orders", b"new")
        for listener in listeners:
            batch = listener.receive()
            assert (batch.bodies, listener.lag()) == ([b"new"], 1)
            assert listener.receive().bodies == [b"new"]  # until it is done
            listener.done(batch)
            assert (len(listener.receive()), listener.lag()) == (0, 0)


def test_a_listener_keeps_its_progress(orders: Brook, tmp_path: Path) -> None:
    state = tmp_path / "progress.json"
    listener = orders.listen("orders", state=state, start="earliest")
    listener.done(listener.receive(4))
    assert json.loads(state.read_text()) == {"orders": 4}
    assert orders.listen("orders", state=state).receive(2).offsets == [4, 5]
    state.write_text("[]")
    with pytest.raises(BadSetting, match="does not hold a listener's progress"):
        orders.listen("orders", state=state)


def test_a_listener_keeps_where_it_began(orders: Brook, tmp_path: Path) -> None:
    """What is sent while it is away is its to get, also if it had got nothing before."""
    state = tmp_path / "progress.json"
    assert not orders.listen("orders", state=state).receive()
    orders.send("orders", b"meanwhile")
    assert orders.listen("orders", state=state).receive().bodies == [b"meanwhile"]


def test_progress_behind_the_end_is_of_another_queue(orders: Brook, tmp_path: Path) -> None:
    """A listener that waited there would skip all that is sent until then."""
    state = tmp_path / "progress.json"
    state.write_text('{"orders": 10}')
    assert not orders.listen("orders", state=state).receive()
    state.write_text('{"orders": 11}')
    with pytest.raises(BadSetting, match="'orders' ends at 10, and the listener's progress is 11"):
        orders.listen("orders", state=state)


def test_a_batch_of_several_topics_is_no_larger_and_passes_none_over(mq: Brook) -> None:
    topics = ["a", "b", "c"]
    mq.append(topics * 4, [b"x"] * 12)
    listener, got = mq.listen(topics, start="earliest"), list[str]()
    while batch := listener.receive(2):
        assert len(batch) == 2
        got += [message.topic for message in batch.messages]
        listener.done(batch)
    assert sorted(got) == sorted(topics * 4)
    assert set(got[:4]) == set(topics), "one has to wait for the others to end"


def test_who_names_no_topic_is_told(mq: Brook) -> None:
    for follow in (mq.listen, mq.listener, lambda topics: mq.consumer(topics, group="g")):
        with pytest.raises(BadSetting, match=r"topics=\[\]: give one or more"):
            follow([])


def test_progress_that_cannot_be_kept_is_said_at_once(orders: Brook, tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"nowhere/p\.json: cannot keep a listener's progress"):
        orders.listen("orders", state=tmp_path / "nowhere" / "p.json")
    with pytest.raises(BadSetting, match="does not hold a listener's progress"):
        orders.listen("orders", state=tmp_path)


def test_a_listener_goes_on_though_its_progress_cannot_be_kept(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brook.workers.PAUSE", 0.001)
    home, got = tmp_path / "home", list[int]()
    home.mkdir()
    with Brook(url, durability="off") as mq:
        note = mq.listener("t", batch=1, state=home / "p.json")(lambda messages: got.append(messages[0].offset))
        home.rename(tmp_path / "away")
        mq.append(["t"] * 3, [b"x"] * 3)
        while len(got) < 3:
            threading.Event().wait(0.002)
        (tmp_path / "away").rename(home)
        mq.send("t", b"x")
        while note.listener.lag():
            threading.Event().wait(0.002)
    assert got == [0, 1, 2, 3]
    assert json.loads((home / "p.json").read_text()) == {"t": 4}


def test_listeners_pass_over_what_was_deleted(orders: Brook) -> None:
    listener = orders.listen("orders", start="earliest")
    orders._store._database.write(lambda db: db.change("DELETE FROM brook_run WHERE count = 1", ()))  # type: ignore[attr-defined]
    orders.send("orders", b"new")
    assert listener.receive().offsets == [10]


def test_listeners_share_a_batch_among_topics(mq: Brook) -> None:
    mq.append(["a"] * 10 + ["b"] * 10, [b"x"] * 20)
    assert mq.listen(["a", "b"], start="earliest").receive(4).topics == [1, 1, 2, 2]


def test_a_listening_handler(url: str) -> None:
    got, all_there = list[bytes](), threading.Event()
    with Brook(url, durability="off") as mq:

        @mq.listener("t", batch=3)
        def note(messages: list[Message]) -> None:
            got.extend(message.body for message in messages)
            if len(got) == 10:
                all_there.set()
            raise ValueError("is logged, and no reason to have them again")

        for n in range(10):
            mq.send("t", b"%d" % n)
        assert all_there.wait(60)
    assert got == [b"%d" % n for n in range(10)]


def test_a_listener_tells_how_far_it_is(orders: Brook) -> None:
    listener = orders.listen("orders", start=4)
    batch = listener.receive(max_messages=3)
    assert listener.next_offsets == {"orders": 4}
    listener.done(batch)
    assert listener.next_offsets == {"orders": 7}

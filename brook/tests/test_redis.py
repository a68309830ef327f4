"""Redis proposes places and the database decides: whatever becomes of Redis, sends go on and offsets are dense."""

import math
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import redis
from servers import HOST, MariaDb, Redis, free_ports, wait_until

from brook import Brook, Forbidden, MissingDriver, testing
from brook.stores import redis_places
from brook.stores.mysql import MysqlStore
from brook.urls import mysql_target

pytestmark = pytest.mark.real


@pytest.fixture
def database(maria: MariaDb) -> str:
    return maria.new_database()


@pytest.fixture
def url(maria: MariaDb, database: str, places: Redis) -> str:
    return f"{maria.url(database)}?redis={HOST}:{places.port}"


@pytest.fixture
def keys(places: Redis) -> Iterator[redis.Redis]:
    with redis.Redis(HOST, places.port) as client:
        yield client


def counter(keys: redis.Redis) -> bytes:
    """Of the queue that has been sent to last."""
    (key,) = keys.keys("brook:*")
    return bytes(key)


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__)
def test_conformance(check: testing.Check, url: str) -> None:
    testing.run_check(check, lambda name: MysqlStore(mysql_target(url)))


def test_redis_hands_out_the_places(url: str, keys: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    keys.flushall()
    asked = list[int]()
    real = redis_places.RedisPlaces.correct
    monkeypatch.setattr(redis_places.RedisPlaces, "correct", lambda self, nexts: (asked.append(1), real(self, nexts)))
    with Brook(url) as mq:
        for n in range(5):
            assert mq.send("t", b"x").offset == n
        assert keys.get(counter(keys)) == b"5"
    assert asked == []


@pytest.mark.parametrize("says", [0, 2, 4, 1000, -7])
def test_what_redis_makes_up_is_not_believed(url: str, keys: redis.Redis, says: int) -> None:
    keys.flushall()
    with Brook(url) as mq:
        mq.append(["t"] * 3, [b"x"] * 3)
        keys.set(counter(keys), says)
        assert [mq.send("t", b"x").offset for _ in range(3)] == [3, 4, 5]
        assert keys.get(counter(keys)) == b"6", "Redis was not corrected"


def test_lost_and_restarted_empty_in_the_middle(url: str, places: Redis) -> None:
    """Two processes' worth of clients send while Redis is killed, stays out, comes back empty, and hangs."""
    offsets, stop, lock = list[int](), threading.Event(), threading.Lock()
    with Brook(url) as first, Brook(url) as second:
        first.create_topics(["t"])

        def send(mq: Brook) -> None:
            while not stop.is_set():
                found = mq.append(["t"] * 2, [b"x"] * 2)
                with lock:
                    offsets.extend(found)

        def go_on() -> None:
            seen = len(offsets)
            wait_until(lambda: len(offsets) > seen + 20, "sends to go on")

        threads = [threading.Thread(target=send, args=(mq,)) for mq in (first, second, first, second)]
        for thread in threads:
            thread.start()
        try:
            go_on()
            places.server.kill()
            go_on()
            places.server.start()
            go_on()
            places.server.pause()
            go_on()
        finally:
            places.server.resume()
            stop.set()
            for thread in threads:
                thread.join()
        assert sorted(offsets) == list(range(len(offsets))), "an offset repeats, or is missing"
        first.subscribe("g")
        assert first.lag("g") == len(offsets)


def test_a_redis_that_is_out_is_left_alone(url: str, places: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = list[str]()
    connect = redis.Connection.connect
    monkeypatch.setattr(redis.Connection, "connect", lambda self: (tried.append("connect"), connect(self)))
    monkeypatch.setattr(redis_places, "REST", 3600.0)
    with Brook(url) as mq:
        mq.send("t", b"x")
        places.server.kill()
        try:
            mq.send("t", b"x")
            tried.clear()
            assert [mq.send("t", b"x").offset for _ in range(3)] == [2, 3, 4]
            assert tried == [], "a send waited for Redis"
            monkeypatch.setattr(redis_places, "time", SimpleNamespace(monotonic=lambda: math.inf))  # its rest is over
            mq.send("t", b"x")
            assert tried, "Redis is never asked again"
        finally:
            places.server.start()


def test_never_there(maria: MariaDb, database: str) -> None:
    with Brook(f"{maria.url(database)}?redis={HOST}:{free_ports(1)[0]}") as mq:
        assert [mq.send("t", b"x").offset for _ in range(2)] == [0, 1]


def test_rules_hold(url: str) -> None:
    with Brook(url) as mq:
        mq.send("t", b"x")
        mq.set_rule("t", "read-only")
        with pytest.raises(Forbidden):
            mq.send("t", b"x")


def test_what_callers_committed_comes_first(url: str, maria: MariaDb, database: str) -> None:
    with Brook(url) as mq:
        mq.send("t", b"0")
        connection = maria.connect(database)
        mq.within(connection).send("t", b"1")
        connection.commit()
        connection.close()
        assert mq.send("t", b"2").offset == 2
        assert [message.body for message in mq.tail("t")] == [b"0", b"1", b"2"]


def test_a_removed_queue_is_forgotten(url: str, keys: redis.Redis) -> None:
    keys.flushall()
    with Brook(url) as mq:
        mq.append(["a", "b"], [b"1", b"2"])
        assert len(keys.keys()) == 2
        mq.remove()
    assert keys.keys() == []


def test_missing_driver(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(MissingDriver, match=r"pip install 'brook-queue\[redis\]'"):
        Brook(url)


def test_the_tests_see_a_store_that_believes_redis(
    url: str, keys: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys.flushall()
    monkeypatch.setattr(
        "brook.sql.mysql.TAKE_PLACES", "UPDATE brook_topic SET next = LAST_INSERT_ID(:first) + :count WHERE id = :topic"
    )
    with Brook(url) as mq:
        mq.append(["t"] * 3, [b"x"] * 3)
        keys.set(counter(keys), 1000)
        assert mq.send("t", b"x").offset != 3

"""What consumers do for all: dead clients are forgotten, and one of the living cleans."""

import threading
from typing import Any

import pytest

from brook import Brook, Message
from brook.attendance import Attendance
from brook.settings import LiveSettings
from brook.upkeep import GONE, Upkeep


def named(client: str) -> str:
    """A client of another host, of which nobody can say whether it lives."""
    return f"{client}/elsewhere/1/1/{client}"


def killed(client: str) -> str:
    """The same process, started at another time: there is none."""
    label, place, pid, started, unique = client.split("/")
    return "/".join((label, place, pid, str(int(started) + 1), unique))


def upkeep(mq: Brook, client: str) -> Upkeep:
    return Upkeep(
        mq._store,
        LiveSettings(mq._store, {}, mq._clock),
        client,
        mq._clock,
        Attendance(mq._store, mq._topics, client, mq._clock),
    )


def clients(mq: Brook) -> set[str]:
    return {state.client for state in mq.client_states()}


def test_the_dead_and_the_long_gone_are_forgotten(mq: Brook, clock: Any) -> None:
    mq.send("t", b"x")
    mq.subscribe("g")
    dead = killed(mq.client)
    mq._store.beat(dead, "g", 1, clock())
    mq._store.beat(named("silent"), "g", 1, clock())
    clock.now += GONE
    for client in (mq.client, named("there")):
        mq._store.beat(client, "g", 1, clock())
    upkeep(mq, mq.client).step()
    assert clients(mq) == {mq.client, named("silent"), named("there")}
    clock.now += 1
    upkeep(mq, mq.client).step()
    assert clients(mq) == {mq.client, named("there")}


def test_one_who_pulls_and_never_tells_is_left_alone(mq: Brook, clock: Any) -> None:
    mq.send("t", b"x")
    mq.subscribe("g")
    batch = mq.receive("g")
    clock.now += 59
    upkeep(mq, named("other")).step()
    mq.ack(batch)


@pytest.fixture
def old(mq: Brook, clock: Any) -> Brook:
    """Ten messages of which five are too old to be kept, and two consumers."""
    mq.subscribe("g")
    mq.set("keep_seconds", 100)
    mq.append(["t"] * 5, [b"old"] * 5)
    clock.now += 101
    mq.append(["t"] * 5, [b"new"] * 5)
    for name in ("a", "b"):
        mq._store.beat(named(name), "g", 1, clock())
    return mq


def stored(mq: Brook) -> int:
    return len(mq.query("t"))


def test_only_when_asked_for(old: Brook, clock: Any) -> None:
    first = upkeep(old, named("a"))
    clock.now += 50
    first.step()
    assert stored(old) == 10
    old.set("clean_every", 60)
    first.step()
    assert stored(old) == 10, "it is not due yet"
    clock.now += 10
    first.step()
    assert stored(old) == 5


def test_it_goes_on_after_the_clock_was_set_back(old: Brook, clock: Any) -> None:
    old.set("clean_every", 60)
    clock.now += 1e6
    first = upkeep(old, named("a"))
    clock.now -= 1e6
    first.step()
    assert stored(old) == 5


def test_the_first_of_the_living_cleans(old: Brook, clock: Any) -> None:
    old.set("clean_every", 10)
    second = upkeep(old, named("b"))
    clock.now += 100
    second.step()
    assert stored(old) == 10, "the first is there, and will do it"
    clock.now += 100
    old._store.beat(named("b"), "g", 1, clock())
    second.step()
    assert stored(old) == 0, "the first was not heard of for two leases"


def test_one_who_steps_by_hand_is_not_waited_for(old: Brook, clock: Any) -> None:
    old.set("clean_every", 10)
    second = upkeep(old, named("b"))
    clock.now += 100
    for name, threads in (("a", 0), ("b", 1)):
        old._store.beat(named(name), "g", threads, clock())
    second.step()
    assert stored(old) == 5, "the first has no threads, and never cleans"


def test_it_runs_by_itself(url: str) -> None:
    with Brook(url, durability="off") as mq:
        mq.set("clean_every", 0.01)
        mq.set("keep_bytes", 0)
        handled = threading.Event()

        @mq.consumer("t", group="g", threads=1)
        def handle(messages: list[Message]) -> None:
            handled.set()

        while not handled.wait(0.01):
            mq.send("t", b"x")  # what is cleaned away before it is claimed, nobody gets
        for _ in range(6000):
            if not mq.query("t"):
                return
            mq._upkeep._stopping.wait(0.01)
        pytest.fail("nobody cleaned within 60 s")

"""The async twins."""

import asyncio
import threading
from inspect import iscoroutinefunction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from brook import AsyncBrook, AsyncListener, BadUrl, Brook, Listener, Message, Outgoing, Refusal, UnknownGroup

# Leaving the block closes; the loop is the caller's to run; a transaction belongs to a thread of the caller's.
NOT_AWAITED = {"close", "run", "within"}


def test_every_method_has_its_twin() -> None:
    missing = {name for name in dir(Brook) if name[0] != "_"} - set(vars(AsyncBrook))
    assert missing == NOT_AWAITED
    assert {name for name in dir(Listener) if name[0] != "_"} - set(vars(AsyncListener)) == set()
    assert all(iscoroutinefunction(getattr(AsyncBrook, name)) for name in vars(AsyncBrook) if name[0] != "_")


def test_send_and_receive(url: str) -> None:
    async def life() -> None:
        async with AsyncBrook(url, durability="off") as mq:
            await mq.create_topics(["t"])
            ids = await asyncio.gather(*(mq.send("t", b"%d" % n) for n in range(50)))
            assert sorted(each.offset for each in ids) == list(range(50))
            await mq.send_many([Outgoing("t", b"x")])
            await mq.subscribe("g")
            batch = await mq.receive("g", wait=60)
            assert len(batch) == 51
            await mq.ack(batch)
            assert await mq.lag("g") == 0
            with pytest.raises(UnknownGroup):
                await mq.lag("nobody")

    asyncio.run(life())


def test_waiting_does_not_block_the_loop(url: str) -> None:
    async def life() -> None:
        async with AsyncBrook(url, durability="off") as mq:
            await mq.create_topics(["t"])
            await mq.subscribe("g")
            waiting = asyncio.create_task(mq.receive("g", wait=60))
            await mq.send("t", b"x")
            assert (await waiting).bodies == [b"x"]

    asyncio.run(life())


def test_a_cancelled_receive_hands_back(url: str) -> None:
    async def life() -> None:
        async with AsyncBrook(url, durability="off") as mq:
            await mq.send("t", b"x")
            await mq.subscribe("g")
            waiting = asyncio.create_task(mq.receive("g", wait=60))
            await asyncio.sleep(0)  # it has begun to claim
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert (await mq.receive("g", wait=30)).bodies == [b"x"]

    asyncio.run(life())


def test_listeners(url: str, tmp_path: Path) -> None:
    async def life() -> None:
        async with AsyncBrook(url, durability="off") as mq:
            listener = await mq.listen("t", state=tmp_path / "progress.json")
            waiting = asyncio.create_task(listener.receive(wait=60))
            await mq.send("t", b"x")
            batch = await waiting
            assert (batch.bodies, await listener.lag(), listener.next_offsets) == ([b"x"], 1, {"t": 0})
            await listener.done(batch)
            assert (await listener.lag(), listener.next_offsets) == (0, {"t": 1})

    asyncio.run(life())


def test_coroutines_as_listening_handlers(url: str) -> None:
    async def life() -> None:
        async with AsyncBrook(url, durability="off") as mq:
            got, all_there = list[bytes](), asyncio.Event()

            @(await mq.listener("t", batch=3))
            async def note(messages: list[Message]) -> None:
                got.extend(message.body for message in messages)
                if len(got) == 5:
                    all_there.set()

            await mq.append(["t"] * 5, [b"%d" % n for n in range(5)])
            await asyncio.wait_for(all_there.wait(), 60)
            assert got == [b"0", b"1", b"2", b"3", b"4"]

    asyncio.run(life())


def test_settings(url: str) -> None:
    async def life() -> None:
        async with AsyncBrook(url, durability="off") as mq:
            await mq.set("batch", 3)
            assert (await mq.settings()).batch == 3

    asyncio.run(life())


def pools() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("brook-aio")}


def test_what_cannot_be_opened_leaves_no_threads() -> None:
    before = pools()

    async def fail() -> None:
        with pytest.raises(BadUrl):
            async with AsyncBrook("carrier-pigeon://"):
                pass

    asyncio.run(fail())
    for thread in pools() - before:
        thread.join(30)
        assert not thread.is_alive()


def test_what_is_opened_too_late_is_closed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, opened, closed = threading.Event(), threading.Event(), threading.Event()

    def slow(*_: object) -> Any:
        opened.set()
        assert gate.wait(60)
        return SimpleNamespace(close=closed.set)

    monkeypatch.setattr("brook.aio.Brook", slow)

    async def give_up() -> None:
        opening = asyncio.create_task(AsyncBrook(url).__aenter__())
        while not opened.is_set():
            await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    asyncio.run(give_up())
    gate.set()
    assert closed.wait(60)


def test_coroutines_as_handlers(url: str) -> None:
    got: list[int] = []

    async def life() -> None:
        async with AsyncBrook(url, durability="off") as mq:
            done = asyncio.Event()

            @(await mq.consumer("t", group="g", threads=2, batch=4, ladder=[0.001]))
            async def note(messages: list[Message]) -> Refusal | None:
                if messages[0].attempts == 1:
                    return Refusal("once more")
                got.extend(message.offset for message in messages)
                if len(got) == 20:
                    done.set()
                return None

            await mq.append(["t"] * 20, [b"x"] * 20)
            await asyncio.wait_for(done.wait(), 60)

    asyncio.run(life())
    assert sorted(got) == list(range(20))

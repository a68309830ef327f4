"""Brook for asyncio: the same methods, to be awaited; but `within`, whose transaction belongs to a thread.

Each call runs in a thread of its own pool, so that sends of many tasks at once go into one commit.
"""

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from brook.broadcast import Listener, Listening
from brook.consumer import Consumer
from brook.errors import BrookError
from brook.model import Batch, Message, Refusal
from brook.queue import Brook
from brook.settings import Settings
from brook.topics import as_names
from brook.workers import FIRST_NAP, LONGEST_NAP, Handler

P = ParamSpec("P")
R = TypeVar("R")
AsyncHandler = Callable[[list[Message]], Coroutine[Any, Any, Refusal | None]]

THREADS = 32


def _twin(method: Callable[Concatenate[Brook, P], R]) -> "Callable[Concatenate[AsyncBrook, P], Coroutine[Any, Any, R]]":
    @functools.wraps(method)
    async def call(self: "AsyncBrook", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._in_thread(functools.partial(method, self.sync, *args, **kwargs))

    return call


def _settings(brook: Brook) -> Settings:
    """What holds now; a change by another process is seen within a second."""
    return brook.settings


class AsyncBrook:
    """`async with AsyncBrook(url) as mq:`; what it takes is what Brook takes."""

    def __init__(self, url: str, **options: Any) -> None:
        self._open = functools.partial(Brook, url, **options)
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="brook-aio")

    async def __aenter__(self) -> Self:
        opening = self._pool.submit(self._open)
        try:
            self.sync = await asyncio.wrap_future(opening)
        except BaseException:
            opening.add_done_callback(_close_unused)
            self._pool.shutdown(wait=False)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._in_thread(self.sync.close)
        finally:
            self._pool.shutdown(wait=False)

    remove = _twin(Brook.remove)
    create_topics = _twin(Brook.create_topics)
    topics = _twin(Brook.topics)
    rules = _twin(Brook.rules)
    settings = _twin(_settings)
    set_rule = _twin(Brook.set_rule)
    set = _twin(Brook.set)
    clean = _twin(Brook.clean)
    send = _twin(Brook.send)
    send_many = _twin(Brook.send_many)
    append = _twin(Brook.append)
    append_runs = _twin(Brook.append_runs)
    subscribe = _twin(Brook.subscribe)
    ack = _twin(Brook.ack)
    refuse = _twin(Brook.refuse)
    renew = _twin(Brook.renew)
    hand_back = _twin(Brook.hand_back)
    reset = _twin(Brook.reset)
    lag = _twin(Brook.lag)
    get = _twin(Brook.get)
    query = _twin(Brook.query)
    tail = _twin(Brook.tail)
    topic_states = _twin(Brook.topic_states)
    group_states = _twin(Brook.group_states)
    client_states = _twin(Brook.client_states)
    listener_states = _twin(Brook.listener_states)
    alerts = _twin(Brook.alerts)
    trace = _twin(Brook.trace)
    metrics = _twin(Brook.metrics)
    dead = _twin(Brook.dead)
    replay_dead = _twin(Brook.replay_dead)
    drop_dead = _twin(Brook.drop_dead)

    async def receive(
        self, group: str, topics: str | Iterable[str] | None = None, *, max_messages: int = 1000, wait: float = 0.0
    ) -> Batch:
        """As Brook.receive; if the task is cancelled, others get at once what it would have got."""
        names = None if topics is None else as_names(topics)
        look = functools.partial(self.sync.receive, group, names, max_messages=max_messages)
        return await _awaited(lambda: self._claim(look), wait)

    async def consumer(self, *args: Any, **options: Any) -> Callable[[AsyncHandler], Consumer]:
        """As Brook.consumer, for a coroutine function, which runs on this loop: `(await mq.consumer(...))(handler)`."""
        begin = await self._in_thread(functools.partial(self.sync.consumer, *args, **options))
        return functools.partial(_register, begin, asyncio.get_running_loop())

    async def listen(self, *args: Any, **options: Any) -> "AsyncListener":
        """As Brook.listen."""
        return AsyncListener(self, await self._in_thread(functools.partial(self.sync.listen, *args, **options)))

    async def listener(self, *args: Any, **options: Any) -> Callable[[AsyncHandler], Listening]:
        """As Brook.listener, for a coroutine function: `(await mq.listener(...))(handler)`."""
        begin = await self._in_thread(functools.partial(self.sync.listener, *args, **options))
        return functools.partial(_register, begin, asyncio.get_running_loop())

    async def _claim(self, look: Callable[[], Batch]) -> Batch:
        future = asyncio.ensure_future(self._in_thread(look))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            future.add_done_callback(self._hand_back)
            raise

    def _hand_back(self, done: "asyncio.Future[Batch]") -> None:
        if not done.cancelled() and done.exception() is None:
            self._pool.submit(_quietly, self.sync.hand_back, done.result())

    async def _in_thread(self, call: Callable[[], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)


class AsyncListener:
    """As Listener, to be awaited."""

    def __init__(self, brook: AsyncBrook, sync: Listener) -> None:
        self.sync = sync
        self._brook = brook

    @property
    def next_offsets(self) -> Mapping[str, int]:
        """How far it has come in each topic."""
        return self.sync.next_offsets

    async def receive(self, max_messages: int = 1000, wait: float = 0.0) -> Batch:
        """What comes next, the same again until it is done; empty if there is nothing."""
        look = functools.partial(self.sync.receive, max_messages)
        return await _awaited(lambda: self._brook._in_thread(look), wait)

    async def done(self, batch: Batch) -> None:
        """Go on behind the batch."""
        await self._brook._in_thread(functools.partial(self.sync.done, batch))

    async def lag(self) -> int:
        """How many messages are still to come."""
        return await self._brook._in_thread(self.sync.lag)


async def _awaited(look: Callable[[], Coroutine[Any, Any, Batch]], wait: float) -> Batch:
    loop, nap = asyncio.get_running_loop(), FIRST_NAP
    end = loop.time() + wait
    while not (batch := await look()) and (left := end - loop.time()) > 0:
        await asyncio.sleep(min(nap, left))
        nap = min(nap * 2, LONGEST_NAP)
    return batch


def _register(begin: Callable[[Handler], R], loop: asyncio.AbstractEventLoop, handler: AsyncHandler) -> R:
    """Have the handler run on the loop, while a thread of the consumer's waits for it."""
    return begin(lambda messages: asyncio.run_coroutine_threadsafe(handler(messages), loop).result())


def _close_unused(opening: Future[Brook]) -> None:
    """Nobody waited until it was open."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


def _quietly(hand_back: Callable[[Batch], None], batch: Batch) -> None:
    """If it cannot be handed back now, others get it when the lease is over."""
    try:
        hand_back(batch)
    except BrookError:
        return

"""Places handed out by Redis, and proven by the database.

1. Redis counts, for each topic, which offset comes next. What it says is a proposal and no more: a message is stored
   at it only if the topic's row in the database says the same, which the transaction that stores it looks at and
   changes under the row's lock. So offsets stay dense and never repeat, whatever Redis has forgotten or made up.
2. If they do not agree (Redis was restarted empty, or somebody who took a place has not used it), or Redis does not
   answer, the database hands out the place, and Redis is told what comes next.
3. A Redis that does not answer within WAIT seconds is left alone for REST seconds: sends go on without it.
"""

import importlib
import time
from collections.abc import Iterable, Mapping
from typing import Any

from brook.errors import BrookError, MissingDriver

WAIT = 0.2
REST = 1.0


class Disagreed(BrookError):
    """The database says that another offset comes next. Nobody outside of the store sees this."""


class RedisPlaces:
    def __init__(self, host: str, port: int, queue: str) -> None:
        """queue: what tells this queue from all others."""
        self._driver = _driver()
        self._redis: Any = self._driver.Redis(
            host=host,
            port=port,
            socket_timeout=WAIT,
            socket_connect_timeout=WAIT,
            retry=self._driver.retry.Retry(self._driver.backoff.NoBackoff(), 0),
        )
        self._queue = queue
        self._rests_until = 0.0

    def take(self, counts: Mapping[int, int]) -> dict[int, int] | None:
        """The offset of the first of so many messages of each topic; None if Redis does not say."""
        if time.monotonic() < self._rests_until:
            return None
        try:
            pipeline = self._redis.pipeline(transaction=False)
            for topic, count in counts.items():
                pipeline.incrby(self._key(topic), count)
            ends = pipeline.execute()
        except self._driver.RedisError:
            self._rest()
            return None
        return {topic: end - count for end, (topic, count) in zip(ends, counts.items(), strict=True)}

    def correct(self, nexts: Mapping[int, int]) -> None:
        """Say which offset comes next in each topic."""
        if time.monotonic() < self._rests_until:
            return
        try:
            self._redis.mset({self._key(topic): following for topic, following in nexts.items()})
        except self._driver.RedisError:
            self._rest()

    def forget(self, topics: Iterable[int]) -> None:
        """These topics are no more."""
        try:
            for topic in topics:
                self._redis.delete(self._key(topic))
        except self._driver.RedisError:
            self._rest()

    def close(self) -> None:
        self._redis.close()

    def _key(self, topic: int) -> str:
        return f"brook:{self._queue}:{topic}"

    def _rest(self) -> None:
        self._rests_until = time.monotonic() + REST


def _driver() -> Any:
    try:
        return importlib.import_module("redis")
    except ImportError:
        raise MissingDriver("redis: not installed: pip install 'brook-queue[redis]'") from None

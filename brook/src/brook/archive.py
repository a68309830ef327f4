"""Looking at messages without claiming them: by id, key, tag, time and offset, and from the end."""

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from brook.model import Message, messages_of
from brook.stores.base import Store
from brook.topics import Topics

# So many runs are read at a time: of the size that we pack, a megabyte.
RUNS = 16


class Search(NamedTuple):
    """What is wanted of a message; None: anything."""

    key: str | None = None
    tag: str | None = None
    since: float | None = None  # seconds of the wall clock
    until: float | None = None  # before this

    def matches(self, message: Message) -> bool:
        return (
            (self.key is None or message.key == self.key)
            and (self.tag is None or self.tag in message.tags)
            and (self.since is None or message.sent >= self.since)
            and (self.until is None or message.sent < self.until)
        )

    @property
    def label(self) -> str | None:
        """What is looked up; there are more keys than tags, so a key leaves less to look through."""
        return self.tag if self.key is None else self.key


class Archive:
    def __init__(self, store: Store, topics: Topics) -> None:
        self._store = store
        self._topics = topics

    def get(self, topic: str, offset: int) -> Message | None:
        found = self._messages(topic, offset, offset + 1, Search())
        return next(found, None)

    def query(self, topic: str, search: Search, first: int, limit: int) -> list[Message]:
        if search.since is not None:
            (topic_id,) = self._topics.ids([topic])
            first = max(first, self._store.offset_at(topic_id, datetime.fromtimestamp(search.since, UTC)))
        return list(itertools.islice(self._messages(topic, first, None, search), limit))

    def tail(self, topic: str, last: int) -> list[Message]:
        (topic_id,) = self._topics.ids([topic])
        end = self._store.offset_at(topic_id, "latest")
        return list(self._messages(topic, max(end - last, 0), end, Search()))

    def _messages(self, topic: str, first: int, end: int | None, search: Search) -> Iterator[Message]:
        (topic_id,) = self._topics.ids([topic])
        while pieces := self._store.scan(topic_id, first, end, runs=RUNS, label=search.label):
            for piece in pieces:
                yield from filter(search.matches, messages_of(piece, topic))
            first = pieces[-1].first + pieces[-1].messages

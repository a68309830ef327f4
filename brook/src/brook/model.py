"""The words: messages as they are sent and received, and batches of them."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

from brook.checks import as_extra
from brook.packing import Body, Extra, Piece

# full: what was acked survives a power cut. normal: it survives kill -9, and a power cut may take the
# last of it. off: as normal, and a power cut may take the whole database.
Durability = Literal["full", "normal", "off"]
# A place in every topic: its first message that is still there, its end, an offset (the end, if it is beyond it),
# or the first message that was sent at a time or later.
Position: TypeAlias = Literal["earliest", "latest"] | int | datetime

# What a topic may be used for.
Rule = Literal["read-write", "write-only", "read-only", "closed"]


class MessageId(NamedTuple):
    topic: str
    offset: int


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to be sent."""

    topic: str
    body: Body
    key: str | None = None
    tags: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def extra(self) -> Extra | None:
        return as_extra(self.key, self.tags, self.properties)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message that was received."""

    topic: str
    offset: int  # its place in the topic, dense from 0
    body: bytes
    key: str | None
    tags: tuple[str, ...]
    properties: Mapping[str, str]
    sent: float  # when it was stored, seconds of the wall clock
    attempts: int  # how often it was handed out, this time included; 0: it was looked at without a claim


class Claimed(NamedTuple):
    """What a store handed out under one lease."""

    receipt: int  # never used again for anything else
    messages: int
    ordered: bool = False  # the group keeps the order of each key
    tags: tuple[str, ...] = ()  # the group wants messages with one of these alone; empty: all


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a handler returns to have messages again later; all of the batch unless it names some."""

    cause: str
    messages: Sequence[Message] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A message that a group has given up on."""

    topic: str
    offset: int
    attempts: int
    died: float  # when, seconds of the wall clock
    cause: str  # of the last attempt's failure


@dataclass(frozen=True)
class Batch:
    """Messages that one client has for the duration of a lease, as parallel columns.

    `pieces` holds the same messages packed, for those who would rather not touch each of them.
    """

    group: str
    claimed: Claimed | None  # None if there was nothing to receive
    pieces: tuple[Piece, ...]
    names: Mapping[int, str] = field(repr=False)  # of the topics, by id

    def __len__(self) -> int:
        return sum(piece.messages for piece in self.pieces)

    @cached_property
    def topics(self) -> list[int]:
        """The topics' ids."""
        return [topic for p in self.pieces for topic in itertools.repeat(p.topic, p.messages)]

    @cached_property
    def offsets(self) -> list[int]:
        return list(itertools.chain.from_iterable(range(p.first, p.first + p.messages) for p in self.pieces))

    @cached_property
    def bodies(self) -> list[bytes]:
        return list(itertools.chain.from_iterable(p.bodies for p in self.pieces))

    @cached_property
    def redelivered(self) -> list[bool]:
        """True where the message was handed out before: its receiver may have worked on it."""
        return [again for p in self.pieces for again in itertools.repeat(p.attempts > 1, p.messages)]

    @property
    def messages(self) -> Iterator[Message]:
        for piece in self.pieces:
            yield from messages_of(piece, self.names[piece.topic])


def messages_of(piece: Piece, topic: str) -> Iterator[Message]:
    for index, (body, extra) in enumerate(zip(piece.bodies, piece.all_extras, strict=True)):
        yield _message(piece, index, body, extra, topic)


def _message(piece: Piece, index: int, body: bytes, extra: Extra | None, topic: str) -> Message:
    key, tags, properties = extra or (None, (), {})
    return Message(
        topic=topic,
        offset=piece.first + index,
        body=body,
        key=key,
        tags=tuple(tags),
        properties=properties,
        sent=piece.sent / 1000,
        attempts=piece.attempts,
    )

"""Receiving in bulk over AMQP: deliveries as arrays, and whether the queues are empty.

Deliveries whose topics, properties and bodies have the same lengths have the same length, and what is not in
these is the same in them. So the first is read as a command, and as many of those that follow as fit are read as
the rows of a matrix.
"""

from collections import deque
from dataclasses import dataclass

import numpy as np

from ackworth.driver.codec.amqp import Arguments, BadFrame, Command, Method, parse
from ackworth.driver.codec.columns import Bools, Bytes, Int64s, are_digits, leading, numbers

TAG_WIDTH = 5  # of a consumer's tag: the index of its topic, with zeros before it
# A delivery's frame: head, method, length of the consumer's tag, and from here on:
_TAGS = slice(12, 12 + TAG_WIDTH)
_DELIVERY = slice(_TAGS.stop, _TAGS.stop + 8)
_REDELIVERED = _DELIVERY.stop
_EXCHANGE = _REDELIVERED + 1  # and its length before it; then the topic, and its length before it
_PROPERTIES = 7 + 12  # where they are in the header's frame


@dataclass(frozen=True)
class Block:
    """Consecutive messages whose bodies have one length."""

    topics: Int64s
    tags: Int64s
    redelivered: Bools
    bodies: Bytes

    def __len__(self) -> int:
        return len(self.tags)

    def split(self, at: int) -> "tuple[Block, Block]":
        return self._part(slice(at)), self._part(slice(at, None))

    def _part(self, rows: slice) -> "Block":
        return Block(self.topics[rows], self.tags[rows], self.redelivered[rows], self.bodies[rows])


@dataclass(frozen=True)
class _Shape:
    """How a delivery looks: which of its bytes are the same in all, and where its body is."""

    fixed: Int64s
    bytes: Bytes
    bodies: slice
    length: int


class Deliveries:
    """What comes to a consumer: messages in blocks, and other commands beside them."""

    def __init__(self) -> None:
        self.others: list[Command] = []
        self._blocks: deque[Block] = deque()
        self._shape: _Shape | None = None

    def __len__(self) -> int:
        return sum(map(len, self._blocks))

    def take(self, limit: int) -> list[Block]:
        """The next messages, at most so many."""
        taken = []
        while limit and self._blocks:
            block, rest = self._blocks.popleft().split(limit)
            if len(rest):
                self._blocks.appendleft(rest)
            taken.append(block)
            limit -= len(block)
        return taken

    def feed(self, data: bytes) -> int:
        """Take in what is there; where it stopped for want of more."""
        at = 0
        while (after := self._feed_rows(data, at) or self._feed_command(data, at)) is not None:
            at = after
        return at

    def _feed_command(self, data: bytes, at: int) -> int | None:
        found = parse(data, at)
        if found is None:
            return None
        said, after = found
        if said.method == Method.BASIC_DELIVER:
            self._blocks.append(_delivery(said))
            self._shape = _shape_of(data[at:after], said)
        else:
            self.others.append(said)
        return after

    def _feed_rows(self, data: bytes, at: int) -> int | None:
        """Messages of the shape of the last one; None if there is none."""
        shape = self._shape
        if shape is None or not (most := (len(data) - at) // shape.length):
            return None
        rows = np.frombuffer(data, np.uint8, most * shape.length, at).reshape(most, shape.length)
        count = leading((rows[:, shape.fixed] == shape.bytes).all(axis=1))
        if not count:
            return None
        rows = rows[:count]
        self._blocks.append(
            Block(
                _indices(rows[:, _TAGS]),
                np.ascontiguousarray(rows[:, _DELIVERY]).view(">u8").reshape(-1).astype(np.int64),
                (rows[:, _REDELIVERED] & 1).astype(bool),
                rows[:, shape.bodies],
            )
        )
        return at + count * shape.length


def _delivery(said: Command) -> Block:
    arguments = Arguments(said.arguments)
    name = arguments.take(arguments.number(1))
    tag, redelivered = arguments.number(8), arguments.number(1) & 1
    return Block(
        _indices(np.frombuffer(name, np.uint8).reshape(1, -1)),
        np.array([tag], np.uint64).astype(np.int64),
        np.array([redelivered], bool),
        np.frombuffer(said.body, np.uint8).reshape(1, -1),
    )


def _shape_of(delivery: bytes, said: Command) -> _Shape | None:
    """None if its body is not one frame."""
    size = len(said.body)
    bodies = slice(len(delivery) - 1 - size, len(delivery) - 1)
    if not size or int.from_bytes(delivery[bodies.start - 4 : bodies.start]) != size:
        return None
    method_end = 11 + len(said.arguments)
    topic = slice(_EXCHANGE + 1 + delivery[_EXCHANGE] + 1, method_end)
    properties = slice(method_end + 1 + _PROPERTIES, method_end + 1 + _PROPERTIES + len(said.properties))
    changes = np.zeros(len(delivery), bool)
    for part in (slice(_TAGS.start, _EXCHANGE), topic, properties, bodies):
        changes[part] = True
    fixed = np.flatnonzero(~changes)
    return _Shape(fixed, np.frombuffer(delivery, np.uint8)[fixed], bodies, len(delivery))


def _indices(names: Bytes) -> Int64s:
    if names.shape[1] != TAG_WIDTH or not are_digits(names).all():
        raise BadFrame("a delivery to nobody")
    return numbers(names)


_QUIET = 0.25  # seconds without a message after which the queues are counted
_OVERDUE = 2.0  # seconds without an answer to that, after which nothing is known


class Census:
    """Whether all queues said that they are empty, and nothing has come since.

    A quorum queue that cannot be asked says that it has neither messages nor consumers. As we are a consumer of
    each, one without consumers has not been counted.
    """

    def __init__(self, queues: int, now: float) -> None:
        self._queues = queues
        self._missing = 0  # answers that have not come yet
        self._all_empty = False  # so far
        self._at = now  # when something was last asked or heard
        self.empty = False

    def spoil(self, now: float) -> None:
        """A message has come."""
        self._all_empty = self.empty = False
        self._at = now

    def due(self, now: float) -> bool:
        """Whether to ask now: when it has been quiet for a while, and the last question is answered."""
        quiet = now - self._at
        if self._missing:
            self.empty &= quiet < _OVERDUE
            return False
        if quiet < _QUIET:
            return False
        self._missing, self._all_empty, self._at = self._queues, True, now
        return True

    def take(self, said: Command, now: float) -> bool:
        """Whether it is an answer."""
        if said.method != Method.QUEUE_DECLARE_OK or not self._missing:
            return False
        arguments = Arguments(said.arguments)
        arguments.short_string()
        messages, consumers = arguments.number(4), arguments.number(4)
        self._all_empty &= messages == 0 and consumers > 0
        self._missing -= 1
        if not self._missing:
            self.empty, self._at = self._all_empty, now
        return True

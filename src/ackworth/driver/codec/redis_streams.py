"""The commands of Redis Streams in bulk: a batch of XADD as one matrix, the answer to XREADGROUP as arrays.

An entry of ours has one field, and is, with every number written without padding:

    *2  $15 1731716255123-0  *2  $1 b  $128 <body>

Entries whose ids and bodies have the same lengths have the same length, and everything but id and body is
the same in them. So the first of them is read value by value, and as many of those that follow as fit are read
as the rows of a matrix.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ackworth.driver.codec.columns import (
    MOST_DIGITS,
    BatchWriter,
    Bytes,
    Int64s,
    are_digits,
    leading,
    numbers,
)
from ackworth.driver.codec.resp import BadReply, Error, bulk, number, parse, read_line

FIELD = b"b"
_CRLF = np.frombuffer(b"\r\n", np.uint8)
_DASH = ord("-")
# A position is an id in one number: milliseconds, and below them 20 bits for the count within a millisecond.
_COUNT_BITS = 20


def appends(topics: Sequence[str]) -> BatchWriter:
    """XADD in batches."""
    heads = [b"*5\r\n" + b"".join(map(bulk, (b"XADD", topic.encode(), b"*", FIELD))) + b"$" for topic in topics]
    return BatchWriter(heads, after=b"\r\n", end=b"\r\n")


@dataclass(frozen=True)
class Entries:
    """Consecutive entries of one topic whose bodies have one length."""

    topic: bytes
    ids: bytes  # each as it stands in a command
    positions: Int64s
    bodies: Bytes

    def __len__(self) -> int:
        return len(self.positions)


@dataclass(frozen=True)
class _Shape:
    """Where things are in an entry, and what must be between them."""

    head: Bytes
    middle: Bytes
    ids: slice
    bodies: slice
    length: int


class Deliveries:
    """The answer to one XREADGROUP, taken in as it comes."""

    def __init__(self) -> None:
        self.found: list[Entries] = []
        self.error: Error | None = None
        self.timed_out = False  # it says that nothing came in time
        self._streams: int | None = None
        self._entries = 0
        self._topic = b""
        self._shape: _Shape | None = None

    @property
    def done(self) -> bool:
        return self._streams == 0 and self._entries == 0

    def take(self, data: bytes, at: int = 0) -> int:
        """Take in what is there, from `at` on; where it stopped for want of more, or because it is done."""
        while not self.done:
            if self._streams is None:
                after = self._take_head(data, at)
            elif self._entries:
                after = self._take_rows(data, at) or self._take_entry(data, at)
            else:
                after = self._take_stream(data, at)
            if after is None:
                break
            at = after
        return at

    def _take_head(self, data: bytes, at: int) -> int | None:
        line = read_line(data, at)
        if line is None:
            return None
        text, after = line
        self._streams = 0
        if text[:1] == b"-":
            self.error = Error(text[1:].decode(errors="replace"))
        elif text == b"*-1":
            self.timed_out = True
        else:
            self._streams = _count(text)
        return after

    def _take_stream(self, data: bytes, at: int) -> int | None:
        pair = read_line(data, at)
        topic = pair and parse(data, pair[1])
        entries = topic and read_line(data, topic[1])
        if not (pair and topic and entries):
            return None
        if pair[0] != b"*2" or not isinstance(topic[0], bytes):
            raise BadReply("a stream is a name and entries")
        assert self._streams is not None
        self._topic, self._entries = topic[0], _count(entries[0])
        self._streams -= 1
        return entries[1]

    def _take_entry(self, data: bytes, at: int) -> int | None:
        found = parse(data, at)
        if found is None:
            return None
        match found[0]:
            case [bytes() as name, [bytes() as field, bytes() as body]] if field == FIELD:
                self._shape = _shape_of(data[at : found[1]], name, body)
                self._add(bulk(name), _positions([name]), np.frombuffer(body, np.uint8).reshape(1, -1))
            case [bytes() as name, None]:  # it was pending, and is deleted
                self._add(bulk(name), _positions([name])[:0], np.empty((0, 0), np.uint8))
            case _:
                raise BadReply("an entry is an id and one field")
        self._entries -= 1
        return found[1]

    def _take_rows(self, data: bytes, at: int) -> int | None:
        """Entries of the shape of the last one; None if there is none."""
        shape = self._shape
        if shape is None or not (most := min(self._entries, (len(data) - at) // shape.length)):
            return None
        rows = np.frombuffer(data, np.uint8, most * shape.length, at).reshape(most, shape.length)
        between = slice(shape.ids.stop, shape.bodies.start)
        fits = (rows[:, : shape.ids.start] == shape.head).all(axis=1)
        fits &= (rows[:, between] == shape.middle).all(axis=1)
        fits &= (rows[:, -2:] == _CRLF).all(axis=1)
        count = leading(fits)
        if not count:
            return None
        rows = rows[:count]
        framed = rows[:, _FRAME : shape.ids.stop + 2].tobytes()
        self._add(framed, _row_positions(rows[:, shape.ids]), rows[:, shape.bodies])
        self._entries -= count
        return at + count * shape.length

    def _add(self, ids: bytes, positions: Int64s, bodies: Bytes) -> None:
        self.found.append(Entries(self._topic, ids, positions, bodies))


_FRAME = len(b"*2\r\n")  # where an entry's id begins, with its length before it


def _count(line: bytes) -> int:
    if line[:1] != b"*" or (count := number(line[1:])) < 0:
        raise BadReply(f"{line[:40]!r} is no beginning of an array")
    return count


def _shape_of(entry: bytes, name: bytes, body: bytes) -> _Shape:
    text = np.frombuffer(entry, np.uint8)
    begin = _FRAME + len(bulk(name)) - len(name) - 2
    ids = slice(begin, begin + len(name))
    bodies = slice(len(entry) - 2 - len(body), len(entry) - 2)
    return _Shape(text[: ids.start], text[ids.stop : bodies.start], ids, bodies, len(entry))


def _row_positions(ids: Bytes) -> Int64s:
    dashes = ids == _DASH
    at = int(dashes[0].argmax())
    if not (dashes[:, at].all() and dashes.sum() == len(ids)):
        return _positions([row.tobytes() for row in ids])
    parts = ids[:, :at], ids[:, at + 1 :]
    if not all(0 < part.shape[1] <= MOST_DIGITS and are_digits(part).all() for part in parts):
        raise BadReply("an id is two numbers")
    return _position(*map(numbers, parts))


def _positions(names: list[bytes]) -> Int64s:
    pairs = [name.split(b"-") for name in names]
    if not all(len(pair) == 2 and all(p.isdigit() and len(p) <= MOST_DIGITS for p in pair) for pair in pairs):
        raise BadReply("an id is two numbers")
    return _position(*np.array([[int(part) for part in pair] for pair in pairs], np.int64).T)


def _position(millis: Int64s, counts: Int64s) -> Int64s:
    if (millis >> (63 - _COUNT_BITS)).any():
        raise BadReply("an id is beyond all time")
    return (millis << _COUNT_BITS) + np.minimum(counts, (1 << _COUNT_BITS) - 1)

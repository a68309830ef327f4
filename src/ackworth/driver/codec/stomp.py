"""STOMP 1.2, as a client reads and writes it. A frame is

    COMMAND
    header:value
    …

    body^@

where a header `content-length` says how long the body is; without it, the body ends at the first NUL. Newlines may
stand before a frame. Values are kept as they were sent, with their escapes.

Frames of one command whose parts have the same lengths have the same length. So the first of them is read by itself,
and as many of those that follow as fit are read as the rows of a matrix. Whatever is no such frame raises BadFrame,
wherever the bytes were split on the way.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ackworth.driver.codec import Unreadable
from ackworth.driver.codec.columns import Bytes, Rows, Shape

_LONGEST_HEAD = 64 << 10
_MOST_BYTES = 128 << 20
_COMMANDS = (b"CONNECTED", b"MESSAGE", b"RECEIPT", b"ERROR")
_DIFFERENT = (b"receipt-id", b"destination", b"ack", b"message-id", b"timestamp")  # from frame to frame, usually
_NUMBER = re.compile(rb"0|[1-9][0-9]{0,8}")
_ESCAPES = {b"\\c": b":", b"\\n": b"\n", b"\\r": b"\r", b"\\\\": b"\\"}


class BadFrame(Unreadable):
    """These bytes are no frame of STOMP."""

    protocol = "STOMP"


@dataclass(frozen=True)
class FrameShape(Shape):
    command: bytes
    headers: dict[bytes, slice]  # where the values are
    body: slice


@dataclass(frozen=True, eq=False)
class Frames:
    """Consecutive frames of one command whose parts have the same lengths."""

    rows: Rows
    shape: FrameShape

    def __len__(self) -> int:
        return self.rows.count

    @property
    def command(self) -> bytes:
        return self.shape.command

    @property
    def bodies(self) -> Bytes:
        return self.rows[self.shape.body]

    def values(self, header: bytes) -> Bytes:
        """Of all of them, as they were sent. Raises BadFrame if they have no such header."""
        if header not in self.shape.headers:
            raise BadFrame(f"a {self.command.decode()} without the header '{header.decode()}'")
        return self.rows[self.shape.headers[header]]

    def value(self, header: bytes) -> str:
        """Of the first of them; empty if it has no such header."""
        raw = self.values(header)[0].tobytes() if header in self.shape.headers else b""
        return re.sub(rb"\\.", lambda found: _ESCAPES.get(found[0], found[0]), raw).decode(errors="replace")


def frame(command: str, **headers: object) -> bytes:
    """A frame without a body; an underscore in the name of a header is a hyphen, two are a dot."""
    names = {name: name.replace("__", ".").replace("_", "-") for name in headers}
    lines = [command, *(f"{names[name]}:{value}" for name, value in headers.items()), "", "\0"]
    return "\n".join(lines).encode()


class Reader:
    """Reads frames out of bytes as they come."""

    def __init__(self) -> None:
        self._data = b""
        self._shape: FrameShape | None = None

    def take(self, data: bytes) -> Iterator[Frames]:
        """The frames that are complete now. Raises BadFrame, after those before it; what is not taken comes next."""
        self._data += data
        at = 0
        try:
            while (one := self._alike(at) or self._frame(at)) is not None:
                at += one.rows.count * one.rows.length
                yield one
        finally:
            self._data = self._data[at:]

    def _alike(self, at: int) -> Frames | None:
        """Frames of the shape of the last one."""
        if self._shape is None:
            return None
        rows = self._shape.rows(self._data, at)
        return Frames(rows, self._shape) if rows.count else None

    def _frame(self, at: int) -> Frames | None:
        begin = at
        while self._data[begin : begin + 1] == b"\n":
            begin += 1
        blank = _find(self._data, b"\n\n", begin, _LONGEST_HEAD)
        if blank is None:
            return None
        command, headers = _read_head(self._data[begin:blank], begin - at)
        length = self._length(headers, at)
        end = _end_of_body(self._data, blank + 2, length)
        if end is None:
            return None
        shape = _shape_of(self._data[at : end + 1], command, headers, slice(blank + 2 - at, end - at))
        self._shape = shape if length is not None or end == blank + 2 else None  # others end at the first NUL
        return Frames(Rows(self._data, at, shape.length, 1), shape)

    def _length(self, headers: dict[bytes, slice], at: int) -> int | None:
        where = headers.get(b"content-length")
        if where is None:
            return None
        text = self._data[at + where.start : at + where.stop]
        if not _NUMBER.fullmatch(text) or int(text) > _MOST_BYTES:
            raise BadFrame(f"{text[:40]!r} is no length")
        return int(text)


def _find(data: bytes, what: bytes, at: int, most: int) -> int | None:
    """Where it is; None if it may still come."""
    found = data.find(what, at, at + most)
    if found < 0 and len(data) - at >= most:
        raise BadFrame(f"no {what!r} within {most} bytes")
    return None if found < 0 else found


def _read_head(text: bytes, at: int) -> tuple[bytes, dict[bytes, slice]]:
    """The command, and where the values of its headers are, if it begins there. Of headers with one name, the first."""
    command, *lines = text.split(b"\n")
    if command not in _COMMANDS:
        raise BadFrame(f"a frame cannot begin with {command[:20]!r}")
    headers: dict[bytes, slice] = {}
    at += len(command) + 1
    for line in lines:
        name, colon, _ = line.partition(b":")
        if not colon:
            raise BadFrame(f"{line[:40]!r} is no header")
        headers.setdefault(name, slice(at + len(name) + 1, at + len(line)))
        at += len(line) + 1
    return command, headers


def _end_of_body(data: bytes, at: int, length: int | None) -> int | None:
    """Where its NUL is; None if that has not come yet."""
    if length is None:
        return _find(data, b"\0", at, _MOST_BYTES)
    if data[at + length : at + length + 1] not in (b"\0", b""):
        raise BadFrame("a body is longer than it says")
    return at + length if len(data) > at + length else None


def _shape_of(frame: bytes, command: bytes, headers: dict[bytes, slice], body: slice) -> FrameShape:
    words = sorted((headers[name] for name in _DIFFERENT if name in headers), key=lambda part: part.start)
    words = [word for word in words if word.stop > word.start]
    edges = [0, *(edge for part in (*words, body) for edge in (part.start, part.stop)), len(frame)]
    return FrameShape(
        length=len(frame),
        texts=tuple((start, frame[start:stop]) for start, stop in zip(edges[::2], edges[1::2], strict=True)),
        words=tuple(words),
        command=command,
        headers=headers,
        body=body,
    )

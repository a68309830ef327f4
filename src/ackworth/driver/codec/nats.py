"""The protocol of NATS, as a client reads and writes it.

A frame is a line, and for a message a payload after it:

    MSG <subject> <subscription> [reply] <bytes>
    HMSG <subject> <subscription> [reply] <bytes of headers> <bytes of headers and body>
    INFO {…}, PING, PONG, +OK, -ERR '…'

Messages whose parts have the same lengths have the same length. So the first of them is read by itself, and as many of
those that follow as fit are read as the rows of a matrix. Whatever is no such frame raises BadFrame, wherever the
bytes were split on the way.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ackworth.driver.codec import Unreadable
from ackworth.driver.codec.columns import Bytes, Rows, Shape

_LONGEST_LINE = 64 << 10
_MOST_BYTES = 64 << 20  # the largest payload that a server can be told to take
_NUMBER = re.compile(rb"0|[1-9][0-9]{0,8}")
_WORD = re.compile(rb"[^\x00-\x20]+")


class BadFrame(Unreadable):
    """These bytes are no frame of NATS."""

    protocol = "NATS"


@dataclass(frozen=True)
class Control:
    """A frame that is one line."""

    word: bytes
    rest: bytes


@dataclass(frozen=True)
class Status:
    """A message that has headers: with them a server says why there is no other."""

    subject: bytes
    text: str  # the first line of the headers, without the protocol: '503', '408 Request Timeout'


@dataclass(frozen=True, eq=False)
class Messages:
    """Consecutive messages whose parts have the same lengths."""

    rows: Rows
    shape: "MessageShape"

    def __len__(self) -> int:
        return self.rows.count

    @property
    def subjects(self) -> Bytes:
        return self.rows[self.shape.subject]

    @property
    def have_replies(self) -> bool:
        return bool(self.replies.size)

    @property
    def replies(self) -> Bytes:
        return self.rows[self.shape.reply]

    @property
    def bodies(self) -> Bytes:
        return self.rows[self.shape.body]


@dataclass(frozen=True)
class MessageShape(Shape):
    subject: slice
    reply: slice  # an empty one if there is none
    body: slice


Frame = Control | Status | Messages


def command(word: str, *parts: object) -> bytes:
    return " ".join([word, *map(str, parts)]).encode() + b"\r\n"


def publish(subject: str, reply: str, said: dict[str, Any] | None = None) -> bytes:
    """A request: JSON, or nothing."""
    body = b"" if said is None else json.dumps(said).encode()
    return command("PUB", subject, reply, len(body)) + body + b"\r\n"


class Reader:
    """Reads frames out of bytes as they come."""

    def __init__(self) -> None:
        self._data = b""
        self._shape: MessageShape | None = None

    def take(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete now. Raises BadFrame, after those before it; what is not taken comes next."""
        self._data += data
        at = 0
        try:
            while (one := self._messages(at) or self._frame(at)) is not None:
                at = one[1]
                yield one[0]
        finally:
            self._data = self._data[at:]

    def _messages(self, at: int) -> tuple[Frame, int] | None:
        """Messages of the shape of the last one."""
        if self._shape is None:
            return None
        rows = self._shape.rows(self._data, at)
        return (Messages(rows, self._shape), at + rows.count * rows.length) if rows.count else None

    def _frame(self, at: int) -> tuple[Frame, int] | None:
        line = _read_line(self._data, at)
        if line is None:
            return None
        text, after = line
        word, _, rest = text.partition(b" ")
        match word.upper():
            case b"MSG":
                return self._message(at, after, rest)
            case b"HMSG":
                return self._status(after, rest)
            case b"PING" | b"PONG" | b"+OK" | b"-ERR" | b"INFO":
                return Control(word.upper(), rest), after
        raise BadFrame(f"a frame cannot begin with {text[:20]!r}")

    def _message(self, at: int, after: int, rest: bytes) -> tuple[Frame, int] | None:
        words = _words(rest, (3, 4))
        end = _end_of_payload(self._data, after, _number(words[-1]))
        if end is None:
            return None
        self._shape = _shape_of(self._data[at:end], words, slice(after - at, end - 2 - at))
        return Messages(Rows(self._data, at, end - at, 1), self._shape), end

    def _status(self, after: int, rest: bytes) -> tuple[Frame, int] | None:
        words = _words(rest, (4, 5))
        headers, size = _number(words[-2]), _number(words[-1])
        end = _end_of_payload(self._data, after, size)
        if end is None:
            return None
        version, _, text = self._data[after : after + headers].partition(b"\r\n")[0].partition(b" ")
        if headers > size or version != b"NATS/1.0":
            raise BadFrame(f"headers begin with {version[:20]!r}")
        return Status(words[0], text.decode(errors="replace")), end


def _read_line(data: bytes, at: int) -> tuple[bytes, int] | None:
    """The line that begins there without its end, and where the next one begins."""
    end = data.find(b"\r\n", at, at + _LONGEST_LINE)
    if end >= 0:
        return data[at:end], end + 2
    if len(data) - at >= _LONGEST_LINE:
        raise BadFrame(f"a line is longer than {_LONGEST_LINE} bytes")
    return None


def _words(rest: bytes, counts: tuple[int, int]) -> list[bytes]:
    words = [word for word in rest.split(b" ") if word]
    if len(words) not in counts or not all(map(_WORD.fullmatch, words)):
        raise BadFrame(f"a message does not begin with {rest[:60]!r}")
    return words


def _number(text: bytes) -> int:
    if not _NUMBER.fullmatch(text) or int(text) > _MOST_BYTES:
        raise BadFrame(f"{text[:40]!r} is no size")
    return int(text)


def _end_of_payload(data: bytes, at: int, size: int) -> int | None:
    """Where the frame ends; None if it is not all here yet."""
    end = at + size
    if not b"\r\n".startswith(data[end : end + 2]):
        raise BadFrame("a payload is longer than it says")
    return end + 2 if len(data) >= end + 2 else None


def _shape_of(frame: bytes, words: list[bytes], body: slice) -> MessageShape:
    begin = frame.index(words[0], len("MSG "))
    subject = slice(begin, begin + len(words[0]))
    begin = frame.index(words[1], subject.stop) + len(words[1])  # after the subscription
    reply = slice(begin, begin)
    if len(words) == 4:
        begin = frame.index(words[2], begin)
        reply = slice(begin, begin + len(words[2]))
    between = [(0, subject.start), (subject.stop, reply.start), (reply.stop, body.start), (body.stop, len(frame))]
    return MessageShape(
        length=len(frame),
        texts=tuple((start, frame[start:stop]) for start, stop in between),
        words=tuple(part for part in (subject, reply) if part.stop > part.start),
        subject=subject,
        reply=reply,
        body=body,
    )

"""RESP, the protocol of Redis, in its version 2.

What is sent in bulk is one matrix of bytes. What comes in bulk is read by columns where it has the shape that
bulk answers have, and value by value where it has not; both ways give the same values.

Whatever is no RESP raises BadReply, wherever the bytes were split on the way.
"""

import re
from dataclasses import dataclass

from ackworth.driver.codec import Unreadable

_MOST_BYTES = 512 << 20  # the largest string that Redis knows
_LONGEST_LINE = 64 << 10
_DEEPEST = 8
_NUMBER = re.compile(rb"-?(0|[1-9][0-9]{0,18})")  # Redis neither pads its numbers nor reads padded ones
_NEWLINE = ord("\n")


class BadReply(Unreadable):
    """These bytes are no RESP."""

    protocol = "RESP"


@dataclass(frozen=True)
class Error:
    """A no of the server. Its first word says which."""

    text: str

    @property
    def code(self) -> str:
        return self.text.partition(" ")[0]


Value = bytes | int | None | Error | list["Value"]


Part = bytes | str | int


def command(*parts: Part) -> bytes:
    """One command."""
    encoded = [part if isinstance(part, bytes) else str(part).encode() for part in parts]
    return b"".join([b"*%d\r\n" % len(encoded), *map(bulk, encoded)])


def bulk(text: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(text), text)


# ---- value by value --------------------------------------------------------------------------------------


def parse(data: bytes, at: int, depth: int = 0) -> tuple[Value, int] | None:
    """The value that begins there, and where it ends; None if not all of it is here yet."""
    line = read_line(data, at)
    if line is None:
        return None
    kind, text, after = data[at : at + 1], line[0][1:], line[1]
    match kind:
        case b"$":
            return _parse_bulk(data, after, _length(text))
        case b"*":
            return _parse_array(data, after, _length(text), depth)
        case b":":
            return number(text), after
        case b"+":
            return text, after
        case _:  # read_line lets nothing else pass than '-'
            return Error(text.decode(errors="replace")), after


def read_line(data: bytes, at: int) -> tuple[bytes, int] | None:
    """The line that begins there without its end, and where the next one begins."""
    if data[at : at + 1] not in (b"$", b"*", b":", b"+", b"-", b""):
        raise BadReply(f"a reply cannot begin with {data[at : at + 1]!r}")
    end = data.find(b"\r", at, at + _LONGEST_LINE)
    if end < 0 and len(data) - at >= _LONGEST_LINE:
        raise BadReply(f"a line is longer than {_LONGEST_LINE} bytes")
    if end < 0 or end + 1 == len(data):
        return None
    if data[end + 1] != _NEWLINE:
        raise BadReply("a carriage return without a newline")
    return data[at:end], end + 2


def number(text: bytes) -> int:
    if not _NUMBER.fullmatch(text):
        raise BadReply(f"{text[:40]!r} is no number")
    return int(text)


def _length(text: bytes) -> int:
    found = number(text)
    if not -1 <= found <= _MOST_BYTES:
        raise BadReply(f"{found} is no length")
    return found


def _parse_bulk(data: bytes, at: int, length: int) -> tuple[bytes | None, int] | None:
    if length < 0:
        return None, at
    end = at + length
    if len(data) < end + 2:
        if data[end : end + 1] not in (b"", b"\r"):
            raise BadReply("a string is longer than it says")
        return None
    if data[end : end + 2] != b"\r\n":
        raise BadReply("a string is longer than it says")
    return data[at:end], end + 2


def _parse_array(data: bytes, at: int, length: int, depth: int) -> tuple[list[Value] | None, int] | None:
    if length < 0:
        return None, at
    if depth == _DEEPEST:
        raise BadReply(f"arrays within arrays, deeper than {_DEEPEST}")
    values: list[Value] = []
    for _ in range(length):
        found = parse(data, at, depth + 1)
        if found is None:
            return None
        values.append(found[0])
        at = found[1]
    return values, at


# ---- answers in bulk -------------------------------------------------------------------------------------


def count_strings(data: bytes, at: int) -> tuple[int, int]:
    """How many strings of 10 to 99 bytes stand there back to back, and where they end: answers to XADD, usually.

    Strings of one length stand at equal distances, and what is between two texts is always the same: the end of
    one string and the head of the next. So as many of them are what they seem to be as have that between them.
    """
    count = 0
    while head := _SHORT_STRING.match(data, at):
        length = len(head[0]) + int(head[1]) + 2
        alike = _alike(data, at, length, b"\r\n" + head[0])
        if data[at + (alike + 1) * length - 2 : at + (alike + 1) * length] == b"\r\n":
            alike += 1  # the last of them has only an end
        if not alike:
            break
        count += alike
        at += alike * length
    return count, at


_SHORT_STRING = re.compile(rb"\$([1-9][0-9])\r\n")


def _alike(data: bytes, at: int, length: int, between: bytes) -> int:
    """After how many strings of this length comes another.

    A column of bytes at a time: for a few hundred of them that is cheaper than arrays, the more so for a process that
    has just been woken.
    """
    count = max(0, (len(data) - at) // length - 1)
    for place in range(len(between)):
        begin, byte = at + length - 2 + place, between[place : place + 1]
        column = data[begin : begin + count * length : length]
        if column != byte * count:
            count -= len(column.lstrip(byte))
    return count

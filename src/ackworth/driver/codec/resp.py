"""RESP, the protocol of Redis, in its version 2.

What is sent in bulk is one matrix of bytes. What comes in bulk is read as arrays where it has the shape that
bulk answers have, and value by value where it has not; both ways give the same values.

Whatever is no RESP raises BadReply, wherever the bytes were split on the way.
"""

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

_MOST_BYTES = 512 << 20  # the largest string that Redis knows
_LONGEST_LINE = 64 << 10
_DEEPEST = 8
_NUMBER = re.compile(rb"-?(0|[1-9][0-9]{0,18})")  # Redis neither pads its numbers nor reads padded ones
_ZERO, _RETURN, _NEWLINE, _DOLLAR = b"0\r\n$"


class BadReply(Exception):
    """These bytes are no RESP."""


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
    """How many strings of 10 to 99 bytes without a newline stand there back to back, and where they end.

    That is the shape of an answer to XADD. It is what it looks like if every length is right: then `parse`
    would find the same strings at the same places.
    """
    text = np.frombuffer(data, np.uint8, offset=at)
    newlines = np.flatnonzero(text == _NEWLINE)
    newlines = newlines[: len(newlines) // 2 * 2]
    heads, ends = newlines[0::2], newlines[1::2]
    starts = np.concatenate(([0], ends + 1))[: len(ends)]
    whole = leading(heads == starts + 4)
    starts, ends = starts[:whole], ends[:whole]
    tens, ones = text[starts + 1] - np.uint8(_ZERO), text[starts + 2] - np.uint8(_ZERO)
    fits = (text[starts] == _DOLLAR) & (tens >= 1) & (tens <= 9) & (ones <= 9) & (text[starts + 3] == _RETURN)
    fits &= (ends == starts + 6 + tens.astype(np.int64) * 10 + ones) & (text[ends - 1] == _RETURN)
    count = leading(fits)
    return count, at + (int(ends[count - 1]) + 1 if count else 0)


def leading(fits: npt.NDArray[np.bool_]) -> int:
    """How many are true before the first that is not."""
    return len(fits) if fits.all() else int(fits.argmin())

"""Frames of one shape are a matrix: what is the same in all of them is compared, what differs is read, by columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]

MOST_DIGITS = 18  # what certainly fits into 64 bits
_SPACE = ord(" ")
_FOUR = np.frombuffer(b"".join(b"%04d" % i for i in range(10_000)), np.uint32)


@dataclass(frozen=True)
class Rows:
    """Frames of one length that stand back to back."""

    data: bytes
    at: int
    length: int
    count: int

    def __getitem__(self, columns: slice) -> Bytes:
        """Some columns of all of them, without copying."""
        width: int = columns.stop - columns.start
        return self._view((self.count, width), "u1", columns.start)

    def has(self, at: int, text: bytes) -> Bools:
        """Which of them have this text there."""
        found: Bools = self._view((self.count,), f"S{len(text)}", at) == text
        return found

    def _view(self, shape: tuple[int, ...], kind: str, at: int) -> npt.NDArray[Any]:
        if not self.count:
            return np.empty(shape, kind)
        return np.ndarray(shape, kind, self.data, self.at + at, (self.length, 1)[: len(shape)])

    def first(self, count: int) -> "Rows":
        return Rows(self.data, self.at, self.length, count)


@dataclass(frozen=True)
class Shape:
    """What frames of one kind and one length have in common."""

    length: int
    texts: tuple[tuple[int, bytes], ...]  # what stands in all of them, and where
    words: tuple[slice, ...]  # where they differ, but have neither spaces nor control characters

    def rows(self, data: bytes, at: int) -> Rows:
        """The frames of this shape that stand there."""
        rows = Rows(data, at, self.length, (len(data) - at) // self.length)
        for where, text in self.texts:
            rows = rows.first(leading(rows.has(where, text)))
        for word in self.words:
            if rows.count and rows[word].min() <= _SPACE:
                rows = rows.first(leading(np.all(rows[word] > _SPACE, axis=1)))
        return rows


def leading(fits: Bools) -> int:
    """How many are true before the first that is not."""
    if not len(fits):
        return 0
    first = int(fits.argmin())
    return len(fits) if fits[first] else first


def are_digits(text: Bytes) -> Bools:
    """Which rows are digits and nothing else."""
    found: Bools = np.all(text - np.uint8(ord("0")) <= 9, axis=1)
    return found


def numbers(text: Bytes) -> Int64s:
    """Rows of at most 18 digits as numbers."""
    values: Int64s = (text - np.uint8(ord("0"))) @ (10 ** np.arange(text.shape[1] - 1, -1, -1))
    return values


def decimal(values: Int64s, digits: int) -> Bytes:
    """Numbers as text, a row each, padded with zeros."""
    groups = -(-digits // 4)
    text = np.empty((len(values), groups), np.uint32)
    for i in range(groups):
        text[:, i] = _FOUR[values // 10_000 ** (groups - 1 - i) % 10_000]
    return text.view(np.uint8)[:, 4 * groups - digits :]


def between(before: bytes, rows: Bytes, after: bytes) -> Bytes:
    """Each row with the same text before and after it."""
    width = len(before) + rows.shape[1]
    matrix = np.empty((len(rows), width + len(after)), np.uint8)
    matrix[:, : len(before)] = np.frombuffer(before, np.uint8)
    matrix[:, len(before) : width] = rows
    matrix[:, width:] = np.frombuffer(after, np.uint8)
    return matrix


class Names:
    """Finds rows among names that are known. What begins as `others` do, and is none of them, is somebody else's."""

    def __init__(self, names: Sequence[str], others: str | None = None) -> None:
        known = np.array([name.encode() for name in names])
        self._order = np.argsort(known)
        self._sorted = known[self._order]
        self._others = others and others.encode()

    def find(self, rows: Bytes) -> Int64s:
        """The index of the name that each is; -1: somebody else's. Raises LookupError, with the first that is none."""
        if not rows.shape[1]:
            raise LookupError("a message without a topic")
        wanted = np.ascontiguousarray(rows).view(f"S{rows.shape[1]}")[:, 0]
        places = np.minimum(np.searchsorted(self._sorted, wanted), len(self._sorted) - 1)
        known = self._sorted[places] == wanted
        for name in set(wanted[~known].tolist()):
            if self._others is None or not name.startswith(self._others):
                raise LookupError(f"{name.decode(errors='replace')} is no topic")
        return np.where(known, self._order[places], -1)


class BatchWriter:
    """Writes batches of messages, each as

        <head of its topic> <its number> <middle> <the size of its body> <after it> <body> <end>

    where the number has a fixed count of digits, perhaps none.
    """

    def __init__(
        self, heads: Sequence[bytes], *, digits: int = 0, middle: bytes = b"", after: bytes, end: bytes
    ) -> None:
        self._lengths = np.array([len(head) for head in heads])
        self._width = int(self._lengths.max())
        self._padded = bool((self._lengths < self._width).any())
        padded = b"".join(head.rjust(self._width, b"\0") for head in heads)
        self._heads = np.frombuffer(padded, np.uint8).reshape(len(heads), self._width)
        self._digits, self._middle, self._after, self._end = digits, middle, after, end
        self._matrix = np.empty((0, 0), np.uint8)
        self._bodies = slice(0)  # its columns for them
        self._used: Bools | None = None  # what of it is no padding; None: all
        self._sizes = self._topics = b""  # those that it is made for, as bytes: these are compared at once

    def encode(self, first: int, topics: Int64s, bodies: Bytes, sizes: Int64s) -> Bytes:
        """The frames back to back, until the next call; the messages are numbered from `first` on."""
        if (wanted := sizes.tobytes()) != self._sizes:  # most often they are the same again
            self._lay_out(sizes)
            self._sizes, self._topics = wanted, b""
        if (wanted := topics.tobytes()) != self._topics:
            self._put_heads(topics)
            self._topics = wanted
        if self._digits:
            ids = np.arange(first, first + len(sizes))
            self._matrix[:, self._width : self._width + self._digits] = decimal(ids, self._digits)
        self._matrix[:, self._bodies] = bodies[:, : self._bodies.stop - self._bodies.start]
        return self._matrix if self._used is None else self._matrix[self._used]

    def _lay_out(self, sizes: Int64s) -> None:
        """A matrix with everything in it that does not depend on topics, numbers and bodies."""
        largest = int(sizes.max())
        size_at = self._width + self._digits + len(self._middle)
        fixed = self._middle + b"%d" % largest + self._after
        body = self._width + self._digits + len(fixed)
        self._matrix = np.empty((len(sizes), body + largest + len(self._end)), np.uint8)
        self._matrix[:, self._width + self._digits : body] = np.frombuffer(fixed, np.uint8)
        self._matrix[:, body + largest :] = np.frombuffer(self._end, np.uint8)
        self._bodies = slice(body, body + largest)
        self._used = None
        if self._padded or sizes.min() < largest:
            self._pad(sizes, slice(size_at, body - len(self._after)))

    def _pad(self, sizes: Int64s, size_columns: slice) -> None:
        digits = size_columns.stop - size_columns.start
        self._matrix[:, size_columns] = decimal(sizes, digits)
        self._used = np.ones(self._matrix.shape, bool)
        self._used[:, size_columns] = sizes[:, None] >= _powers(digits)
        self._used[:, self._bodies] = np.arange(self._bodies.stop - self._bodies.start) < sizes[:, None]

    def _put_heads(self, topics: Int64s) -> None:
        np.take(self._heads, topics, axis=0, out=self._matrix[:, : self._width], mode="clip")
        if self._used is not None:
            self._used[:, : self._width] = np.arange(self._width) >= self._width - self._lengths[topics][:, None]


def _powers(digits: int) -> Int64s:
    """What a number must reach to have each of its digits; the last digit it always has."""
    powers: Int64s = 10 ** np.arange(digits - 1, -1, -1)
    powers[-1] = 0
    return powers

"""Runs: messages that are stored and read as one.

A *run* is a number of consecutive messages of one topic, their bodies packed back to back. It is what
a store writes and reads, so that a message in a batch costs bytes and not statements. A *piece* is
the part of a stored run that one claim covers.
"""

import itertools
import json
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from brook.errors import BadMessage

Body = bytes | bytearray | memoryview  # or anything else that holds single bytes in a row
Extra = tuple[str | None, Sequence[str], dict[str, str]]  # key, tags, properties of one message

# A receiver that wants one message of a run reads all of it: runs that we pack end about here.
RUN_BYTES = 64 * 1024


class Run(NamedTuple):
    topic: int  # the topic's id
    messages: int
    data: Body  # the bodies, back to back
    sizes: bytes | None = None  # of each body, little-endian uint32; None if they are all of one size
    extras: str | None = None  # JSON, an Extra or null for each message
    sender: str | None = None  # JSON, who sent it: [host/pid, thread] or [host/pid, thread of each message]


class Piece(NamedTuple):
    topic: int
    first: int  # offset of its first message
    messages: int
    attempts: int  # how often the messages were handed out, this time included
    sent: int  # milliseconds of the wall clock
    data: bytes
    sizes: bytes | None
    extras: Sequence[Extra | None] | None

    @property
    def bodies(self) -> list[bytes]:
        return unpack(self.data, self.messages, self.sizes)

    @property
    def all_extras(self) -> Sequence[Extra | None]:
        """One for each message."""
        return self.extras or [None] * self.messages

    @property
    def keys(self) -> list[str | None]:
        return [extra and extra[0] for extra in self.all_extras]


def pack(topic: int, bodies: Sequence[Body], extras: Sequence[Extra | None] = ()) -> list[Run]:
    """The messages as runs of about RUN_BYTES; extras is empty, or has an item for each body."""
    sizes = list(map(len, bodies))
    cuts = [0, *_cuts(sizes), len(sizes)] if sum(sizes) > RUN_BYTES else [0, len(sizes)]
    return [
        _run(topic, bodies[begin:end], sizes[begin:end], extras[begin:end]) for begin, end in itertools.pairwise(cuts)
    ]


def largest_body(run: Run) -> int:
    """Of a run that came from outside: BadMessage if it does not fit together."""
    if run.messages > 0 and run.sizes is None and len(run.data) % run.messages == 0:
        return len(run.data) // run.messages
    if run.messages > 0 and run.sizes is not None and len(run.sizes) == 4 * run.messages:
        sizes = _lengths(run.sizes)
        if sum(sizes) == len(run.data):
            return max(sizes)
    raise BadMessage(f"{len(run.data)} bytes do not make a run of {run.messages} bodies: pack them again")


def labels(extras: str | None) -> set[str]:
    """The keys and the tags of a run's messages."""
    given: list[Extra] = [extra for extra in json.loads(extras) if extra] if extras else []
    tags = itertools.chain.from_iterable(tags for _, tags, _ in given)
    return {key for key, _, _ in given if key is not None}.union(tags)


def unpack(data: bytes, count: int, sizes: bytes | None) -> list[bytes]:
    if sizes is not None:
        ends = itertools.accumulate(_lengths(sizes))
        return [data[begin:end] for begin, end in itertools.pairwise([0, *ends])]
    if not data:
        return [b""] * count
    # Several times faster than slicing.
    return list(itertools.chain.from_iterable(struct.iter_unpack(f"{len(data) // count}s", data)))


def cut(piece: Piece, first: int, end: int) -> Piece:
    """The part of the piece with the offsets from first to before end."""
    begin, stop = max(first - piece.first, 0), min(end - piece.first, piece.messages)
    if begin == 0 and stop == piece.messages:
        return piece
    low, high = _byte_range(piece, begin, stop)
    return piece._replace(
        first=piece.first + begin,
        messages=stop - begin,
        data=piece.data[low:high],
        sizes=piece.sizes and piece.sizes[4 * begin : 4 * stop],
        extras=piece.extras and piece.extras[begin:stop],
    )


def pick(piece: Piece, wanted: Sequence[bool]) -> Iterator[Piece]:
    """The parts of the piece whose messages are wanted."""
    index = piece.first
    for is_wanted, stretch in itertools.groupby(wanted):
        end = index + len(list(stretch))
        if is_wanted:
            yield cut(piece, index, end)
        index = end


def tagged(piece: Piece, tags: frozenset[str]) -> Iterator[Piece]:
    """The parts of the piece whose messages have one of the tags."""
    return pick(piece, [extra is not None and not tags.isdisjoint(extra[1]) for extra in piece.all_extras])


def _run(topic: int, bodies: Sequence[Body], sizes: list[int], extras: Sequence[Extra | None]) -> Run:
    return Run(
        topic,
        len(sizes),
        bodies[0] if len(sizes) == 1 else b"".join(bodies),
        None if len(set(sizes)) == 1 else struct.pack(f"<{len(sizes)}I", *sizes),
        json.dumps(extras) if any(extras) else None,
    )


def _cuts(sizes: list[int]) -> Iterator[int]:
    """Where a new run begins."""
    total = 0
    for index, size in enumerate(sizes):
        if total and total + size > RUN_BYTES:
            yield index
            total = 0
        total += size


def _byte_range(piece: Piece, begin: int, stop: int) -> tuple[int, int]:
    if piece.sizes is None:
        size = len(piece.data) // piece.messages
        return begin * size, stop * size
    sizes = _lengths(piece.sizes)
    return sum(sizes[:begin]), sum(sizes[:stop])


def _lengths(sizes: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(sizes) // 4}I", sizes)

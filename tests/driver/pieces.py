"""Codecs held against themselves: the same bytes in other pieces, byte by byte, or damaged."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

F_co = TypeVar("F_co", covariant=True)


class Reader(Protocol[F_co]):
    _shape: object  # of the frame that the next may be like, and then is read as a row

    def take(self, data: bytes) -> Sequence[F_co]: ...


def split(data: bytes, cuts: Sequence[int]) -> Iterator[bytes]:
    begin = 0
    for end in [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]:
        yield data[begin:end]
        begin = end


def in_pieces(reader: Reader[F_co], data: bytes, cuts: Sequence[int]) -> Iterator[F_co]:
    """The frames, when the bytes come in pieces."""
    for piece in split(data, cuts):
        yield from reader.take(piece)


def byte_by_byte(reader: Reader[F_co], data: bytes) -> Iterator[F_co]:
    """The frames, with none for the next to be like: none is read as a row."""
    for i in range(len(data)):
        reader._shape = None
        yield from reader.take(data[i : i + 1])


def outcome_or(error: type[Exception], read: Callable[[], object]) -> object:
    """What is read, or that nothing can be."""
    try:
        return read()
    except error:
        return error


def damage(data: bytes, place: int, byte: int) -> bytes:
    place %= len(data)
    return data[:place] + bytes([byte]) + data[place + 1 :]

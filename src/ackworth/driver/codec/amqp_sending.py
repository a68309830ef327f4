"""Sending in bulk over AMQP: a batch of messages as one matrix, confirms as arrays.

A message is three frames: its method, its header, its body. Messages whose topics and bodies have the same
lengths have the same length, so a batch is the rows of a matrix, of which only topic, number, size and body change.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ackworth.driver.codec.amqp import FRAME_END, FRAME_EXTRA, BadFrame, Method, command, publish
from ackworth.driver.codec.columns import Bools, Bytes, Int64s, Rows, leading

# Where things are in a message of ours, counted back from where its body begins.
_BODY_SIZE, _NUMBER, _FRAME_SIZE = slice(-27, -19), slice(-16, -8), slice(-4, None)


class Publishes:
    """Messages to one exchange in batches, for a fixed list of topics."""

    def __init__(self, exchange: str, topics: Sequence[str], frame_max: int) -> None:
        self._exchange, self._topics, self._frame_max = exchange, topics, frame_max
        heads = [publish(exchange, topic, 0, b"\0")[:-2] for topic in topics]
        self._lengths = np.array([len(head) for head in heads])
        self._width = int(self._lengths.max())
        padded = b"".join(head.rjust(self._width, b"\0") for head in heads)
        self._heads = np.frombuffer(padded, np.uint8).reshape(len(heads), self._width)

    def encode(self, first_number: int, topics: Int64s, bodies: Bytes, sizes: Int64s) -> Bytes:
        """The messages back to back, numbered from the first."""
        smallest, largest = int(sizes.min()), int(sizes.max())
        if not 0 < smallest <= largest <= self._frame_max - FRAME_EXTRA:
            return self._one_by_one(first_number, topics, bodies, sizes)
        matrix = np.empty((len(sizes), self._width + largest + 1), np.uint8)
        heads, rest = matrix[:, : self._width], matrix[:, self._width :]
        np.take(self._heads, topics, axis=0, out=heads, mode="clip")
        heads[:, _NUMBER] = _big_endian(np.arange(first_number, first_number + len(sizes)), 8)
        heads[:, _BODY_SIZE] = _big_endian(sizes, 8)
        heads[:, _FRAME_SIZE] = _big_endian(sizes, 4)
        rest[:, :largest] = bodies[:, :largest]
        rest[np.arange(len(sizes)), sizes] = FRAME_END
        if smallest == largest and (self._lengths == self._width).all():
            return matrix
        return self._without_padding(matrix, topics, sizes)

    def _without_padding(self, matrix: Bytes, topics: Int64s, sizes: Int64s) -> Bytes:
        columns = np.arange(matrix.shape[1])
        begin, end = self._width - self._lengths[topics], self._width + sizes
        flat: Bytes = matrix[(columns >= begin[:, None]) & (columns <= end[:, None])]
        return flat

    def _one_by_one(self, first_number: int, topics: Int64s, bodies: Bytes, sizes: Int64s) -> Bytes:
        messages = [
            publish(self._exchange, self._topics[topic], first_number + i, bodies[i, :size].tobytes(), self._frame_max)
            for i, (topic, size) in enumerate(zip(topics.tolist(), sizes.tolist(), strict=True))
        ]
        return np.frombuffer(b"".join(messages), np.uint8)


def _big_endian(numbers: Int64s, size: int) -> Bytes:
    """A row of so many bytes for each."""
    return numbers.astype(f">u{size}").view(np.uint8).reshape(-1, size)


# ---- what is confirmed -------------------------------------------------------------------------------------

# A confirm's frame: head and method, tag, whether it stands for all before it, end.
_ACK, _NACK = (command(method, bytes(9))[:-10] for method in (Method.BASIC_ACK, Method.BASIC_NACK))
_TAG, _MULTIPLE, _END = slice(11, 19), slice(19, 20), slice(20, 21)
CONFIRM_BYTES = _END.stop


@dataclass(frozen=True)
class Confirms:
    """Consecutive ones of one kind."""

    acked: bool  # or nacked
    tags: Int64s
    multiple: Bools  # whether a tag also stands for all before it

    def __len__(self) -> int:
        return len(self.tags)


_NO_CONFIRMS = Confirms(True, np.empty(0, np.int64), np.empty(0, bool))


def confirms(data: bytes, at: int) -> Confirms:
    """As many as stand there back to back."""
    head = data[at : at + _TAG.start]
    if head not in (_ACK, _NACK):
        return _NO_CONFIRMS
    rows = Rows(data, at, CONFIRM_BYTES, (len(data) - at) // CONFIRM_BYTES)
    rows = rows.first(leading(rows.has(0, head) & (rows[_END][:, 0] == FRAME_END)))
    tags = np.ascontiguousarray(rows[_TAG]).view(">i8")[:, 0].astype(np.int64)
    return Confirms(head == _ACK, tags, (rows[_MULTIPLE][:, 0] & 1).astype(bool))


class Unconfirmed:
    """The messages that are sent and not confirmed. The broker counts them from 1: that is their tag."""

    def __init__(self) -> None:
        self._low = 1  # the tag of the first message here
        self._seqs = np.empty(0, np.int64)
        self._open = np.empty(0, bool)

    def add(self, first_seq: int, count: int) -> None:
        self._seqs = np.concatenate([self._seqs, np.arange(first_seq, first_seq + count)])
        self._open = np.concatenate([self._open, np.ones(count, bool)])

    def settle(self, said: Confirms) -> Int64s:
        """The seqs that these confirms stand for; what came back before is not among them."""
        if said.tags.min() < 1 or said.tags.max() >= self._low + len(self._seqs):
            raise BadFrame("a confirm of a message that was not sent")
        places = said.tags - self._low
        meant = np.zeros(len(self._seqs), bool)
        meant[: max(0, int(places[said.multiple].max(initial=-1)) + 1)] = True
        singles = places[~said.multiple]
        meant[singles[singles >= 0]] = True
        return self._close(meant & self._open)

    def give_back(self, seq: int) -> Int64s:
        """One that no queue takes."""
        meant = (self._seqs == seq) & self._open
        if not meant.any():
            raise BadFrame("a message came back that was not sent")
        return self._close(meant)

    def _close(self, meant: Bools) -> Int64s:
        self._open &= ~meant
        closed = self._seqs[meant]
        done = len(self._open) if not self._open.any() else int(self._open.argmax())
        self._seqs, self._open, self._low = self._seqs[done:], self._open[done:], self._low + done
        return closed

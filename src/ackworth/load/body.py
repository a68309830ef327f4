"""What a body carries, built and checked a batch at a time.

A batch of bodies is a matrix of bytes, one row a message, each row padded with zeros to whole words
of 8 bytes. The words of a body, little endian:

    0  magic (4 bytes), size in bytes (4 bytes)
    1  the run
    2  producer (2 bytes), topic (2 bytes), zeros
    3  seq
    4  t_sent, nanoseconds of the monotonic clock
    5  checksum of all the others
    6… filling that differs from message to message

The checksum multiplies every word, folded onto itself, by an odd constant of its place, and adds up
modulo 2^64: a change in any one word is always seen, several changes go unseen once in 2^32 at the
most. Zero words add nothing, so the padding does not matter; a cut or grown body betrays itself by
its size.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]

HEADER = 48
_MAGIC = np.uint64(0x31574B41)  # "AKW1"
_SIZE, _RUN, _WHO, _SEQ, _TIME, _SUM, _FILL = range(7)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)
_FOLD = np.uint64(29)
_LOW16 = np.uint64(0xFFFF)


def _odd_constants(count: int) -> Words:
    """The same for every run and version: bodies are checked by whoever reads the record."""
    return mix(np.arange(1, count + 1, dtype=np.uint64)) | _ONE


def mix(values: Words) -> Words:
    """Scramble 64-bit numbers, one to one, so that neighbours look unrelated."""
    values = (values + _GOLDEN) * np.uint64(0xD6E8FEB86659FD93)
    values = (values ^ (values >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return values ^ (values >> np.uint64(32))


class Bodies:
    """Builds and checks the bodies of one run. Keeps the constants of the largest body seen."""

    def __init__(self, run: int) -> None:
        self._run = np.uint64(run)
        self._constants = _odd_constants(16)

    def build(self, producer: int, topics: Int64s, first_seq: int, sizes: Int64s, t_sent: int) -> npt.NDArray[np.uint8]:
        """A matrix of bodies with consecutive seqs; row i holds sizes[i] bytes and zeros after them."""
        count = len(topics)
        words = np.empty((count, -(-int(sizes.max()) // 8)), np.uint64)
        seqs = np.arange(first_seq, first_seq + count, dtype=np.uint64)
        words[:, _SIZE] = _MAGIC | (sizes.astype(np.uint64) << np.uint64(32))
        words[:, _RUN] = self._run
        words[:, _WHO] = np.uint64(producer) | (topics.astype(np.uint64) << np.uint64(16))
        words[:, _SEQ] = seqs
        words[:, _TIME] = np.uint64(t_sent)
        words[:, _SUM] = 0
        if words.shape[1] > _FILL:
            keys = mix(seqs ^ (np.uint64(producer) << np.uint64(48)) ^ self._run)
            np.multiply(keys[:, None], self._columns(words.shape[1])[_FILL:], out=words[:, _FILL:])
        matrix = words.view(np.uint8)
        _clear_beyond(matrix, sizes)
        words[:, _SUM] = self._sums(words)
        return matrix

    def check(self, matrix: npt.NDArray[np.uint8], lengths: Int64s) -> "Checked":
        """What each received body says it is, and whether every byte of it is as it was sent.

        The matrix has zeros beyond each row's length, and whole words.
        """
        if matrix.shape[1] < HEADER:
            matrix = np.pad(matrix, ((0, 0), (0, HEADER - matrix.shape[1])))
        words = matrix.view(np.uint64)
        who = words[:, _WHO]
        ours = (words[:, _SIZE] == (_MAGIC | (lengths.astype(np.uint64) << np.uint64(32)))) & (lengths >= HEADER)
        intact = ours & (self._sums(words) == words[:, _SUM])
        return Checked(
            producer=np.where(ours, (who & _LOW16).astype(np.int64), -1),
            topic=np.where(ours, ((who >> np.uint64(16)) & _LOW16).astype(np.int64), -1),
            seq=np.where(ours, words[:, _SEQ].astype(np.int64), -1),
            t_sent=np.where(intact, words[:, _TIME].astype(np.int64), 0),
            intact=intact,
            foreign=intact & (words[:, _RUN] != self._run),
        )

    def _sums(self, words: Words) -> Words:
        folded = words >> _FOLD
        folded ^= words
        folded[:, _SUM] = 0
        folded *= self._columns(words.shape[1])
        sums: Words = folded.sum(axis=1, dtype=np.uint64)
        return sums

    def _columns(self, width: int) -> Words:
        if width > len(self._constants):
            self._constants = _odd_constants(width)
        return self._constants[:width]


@dataclass(frozen=True)
class Checked:
    """Columns, one entry a body."""

    producer: Int64s  # -1 where the body is not one of ours
    topic: Int64s
    seq: Int64s
    t_sent: Int64s  # 0 where it is not intact
    intact: npt.NDArray[np.bool_]
    foreign: npt.NDArray[np.bool_]


def _clear_beyond(matrix: npt.NDArray[np.uint8], sizes: Int64s) -> None:
    smallest = int(sizes.min())
    if smallest < matrix.shape[1]:
        tail = matrix[:, smallest:]
        tail[np.arange(smallest, matrix.shape[1]) >= sizes[:, None]] = 0

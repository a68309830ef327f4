"""Bodies as a matrix of bytes: a row each, zeros beyond its length, whole words wide."""

import numpy as np
import numpy.typing as npt

from ackworth.driver.contract import Int64s

Matrix = npt.NDArray[np.uint8]


def as_matrix(bodies: list[bytes]) -> tuple[Matrix, Int64s]:
    """Bodies of any lengths, and the lengths."""
    lengths = np.fromiter(map(len, bodies), np.int64, len(bodies))
    width = _whole_words(int(lengths.max(initial=0)))
    whole = bodies if (lengths == width).all() else [body.ljust(width, b"\0") for body in bodies]
    return np.frombuffer(b"".join(whole), np.uint8).reshape(len(bodies), width), lengths


def from_equal(data: bytes, size: int) -> tuple[Matrix, Int64s]:
    """Bodies of one size that stand back to back, and their lengths."""
    rows = np.frombuffer(data, np.uint8).reshape(-1, size)
    lengths = np.full(len(rows), size)
    if size == _whole_words(size):
        return rows, lengths
    matrix = np.zeros((len(rows), _whole_words(size)), np.uint8)
    matrix[:, :size] = rows
    return matrix, lengths


def stacked(blocks: list[Matrix]) -> tuple[Matrix, Int64s]:
    """Blocks of bodies, each block of one size, below each other, and the lengths."""
    lengths: Int64s = np.repeat([block.shape[1] for block in blocks], [len(block) for block in blocks])
    width = _whole_words(int(lengths.max(initial=0)))
    matrix = (np.empty if (lengths == width).all() else np.zeros)((len(lengths), width), np.uint8)
    at = 0
    for block in blocks:
        matrix[at : at + len(block), : block.shape[1]] = block
        at += len(block)
    return matrix, lengths


def back_to_back(matrix: Matrix, lengths: Int64s) -> Matrix:
    """The bodies without what is beyond their lengths, one after the other."""
    if len(lengths) and (lengths == lengths[0]).all():
        return np.ascontiguousarray(matrix[:, : lengths[0]]).reshape(-1)
    flat: Matrix = matrix[np.arange(matrix.shape[1]) < lengths[:, None]]
    return flat


def _whole_words(size: int) -> int:
    return max(8, -(-size // 8) * 8)

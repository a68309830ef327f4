"""Pieces of a topic as rows: bodies as they lie in the queue, one buffer for all."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from brook import Piece

SCHEMA = StructType(
    [
        StructField("offset", LongType(), nullable=False),
        StructField("time", TimestampType(), nullable=False),  # when it was stored
        StructField("key", StringType()),
        StructField("tags", ArrayType(StringType(), containsNull=False), nullable=False),
        StructField("properties", MapType(StringType(), StringType(), valueContainsNull=False), nullable=False),
        StructField("body", BinaryType(), nullable=False),
    ]
)
# The same in Arrow's words: Spark takes nothing that differs, not even in what may be null.
_ARROW = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("time", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("key", pa.string()),
        pa.field("tags", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False),
        pa.field("properties", pa.map_(pa.string(), pa.field("value", pa.string(), nullable=False)), nullable=False),
        pa.field("body", pa.binary(), nullable=False),
    ]
)


def to_rows(pieces: Sequence[Piece]) -> pa.RecordBatch:
    counts = [piece.messages for piece in pieces]
    extras = [extra or (None, (), {}) for piece in pieces for extra in piece.all_extras]
    columns = [
        np.concatenate([np.arange(piece.first, piece.first + piece.messages) for piece in pieces]),
        np.repeat([piece.sent * 1000 for piece in pieces], counts),
        [key for key, _, _ in extras],
        [tags for _, tags, _ in extras],
        [list(properties.items()) for _, _, properties in extras],
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=False)]
    return pa.RecordBatch.from_arrays([*arrays, _bodies(pieces)], schema=_ARROW)


def _bodies(pieces: Sequence[Piece]) -> pa.Array:
    ends = np.concatenate(([0], np.cumsum(np.concatenate([_sizes(piece) for piece in pieces])))).astype(np.int32)
    data = pa.py_buffer(b"".join(piece.data for piece in pieces))
    return pa.Array.from_buffers(pa.binary(), len(ends) - 1, [None, pa.py_buffer(ends), data])


def _sizes(piece: Piece) -> npt.NDArray[np.int64]:
    if piece.sizes is None:
        return np.full(piece.messages, len(piece.data) // piece.messages)
    return np.frombuffer(piece.sizes, "<u4").astype(np.int64)

"""Segments: the Parquet files of the record, complete once they have their final name.

A segment is written beside under a name with a dot, synced, and renamed. Its layout is the one that
was measured to be small and fast to judge: see `Column.packed` of the schema.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ackworth.history.schema import ROWS_PER_GROUP, ROWS_PER_SEGMENT, Table

Values = npt.NDArray[Any] | Sequence[str]


def segment_name(series: str, number: int) -> str:
    return f"{series}-{number:06d}.parquet"


class SegmentWriter:
    """Writes the rows of one series, in order, as segments numbered from `number`."""

    def __init__(
        self,
        record: Path,
        table: Table,
        series: str,
        number: int = 0,
        *,
        rows_per_group: int = ROWS_PER_GROUP,
        rows_per_segment: int = ROWS_PER_SEGMENT,
    ) -> None:
        self.number = number  # of the segment that is being written
        self._directory = record / table.name
        self._directory.mkdir(parents=True, exist_ok=True)
        self._table = table
        self._series = series
        self._rows_per_group = rows_per_group
        self._rows_per_segment = rows_per_segment
        self._waiting: list[pa.RecordBatch] = []  # not yet enough for a row group
        self._file: pq.ParquetWriter | None = None
        self._written = 0  # rows of the open segment

    def write(self, columns: Mapping[str, Values]) -> list[Path]:
        """Add rows; returns the segments that this completed."""
        batch = _batch(self._table, columns)
        done: list[Path] = []
        while batch.num_rows:
            room = self._rows_per_group - self._waiting_rows()
            self._waiting.append(batch.slice(0, room))
            batch = batch.slice(room)
            if self._waiting_rows() == self._rows_per_group:
                self._write_group()
                if self._written >= self._rows_per_segment:
                    done.append(self._finish())
        return done

    def close(self) -> list[Path]:
        """Complete the segment that is open, if there is one."""
        self._write_group()
        return [self._finish()] if self._file else []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()

    def _waiting_rows(self) -> int:
        return sum(batch.num_rows for batch in self._waiting)

    def _write_group(self) -> None:
        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting)
        self._file = self._file or _parquet(self._beside, self._table)
        self._file.write_table(table, row_group_size=self._rows_per_group)
        self._written += table.num_rows
        self._waiting = []

    def _finish(self) -> Path:
        assert self._file is not None
        self._file.close()
        path = self._directory / segment_name(self._series, self.number)
        _sync(self._beside)
        self._beside.rename(path)
        _sync(self._directory)
        self._file, self._written, self.number = None, 0, self.number + 1
        return path

    @property
    def _beside(self) -> Path:
        return self._directory / f".{segment_name(self._series, self.number)}"


def _parquet(path: Path, table: Table) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        path,
        table.arrow,
        # What is packed does not shrink any more.
        compression={c.name: "none" if c.packed else "snappy" for c in table.columns},
        use_dictionary=[c.name for c in table.columns if not c.packed],
        column_encoding={c.name: "DELTA_BINARY_PACKED" for c in table.columns if c.packed},
        write_page_checksum=True,
    )


def _batch(table: Table, columns: Mapping[str, Values]) -> pa.RecordBatch:
    schema = table.arrow
    return pa.RecordBatch.from_arrays([_array(columns[f.name], f.type) for f in schema], schema=schema)


def _array(values: Values, kind: pa.DataType) -> pa.Array:
    if pa.types.is_string(kind):
        return pa.array(list(values), kind)
    numbers = np.ascontiguousarray(values, kind.to_pandas_dtype())
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

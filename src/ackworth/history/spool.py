"""The spool: where events are safe the moment they are appended, even if their writer is killed.

A series is a row of chunk files, each mapped into the memory of the one process that writes it, so
that what was appended outlives the process without a system call. A chunk is

    a page of header: magic, version, capacity, and the count of rows that are whole
    one array a column, each of `capacity` entries, in the order of the schema

Rows are copied first and counted afterwards: a row that is counted is whole. A chunk is finished
when the series has a later one, or when its writer is gone. Space is allocated when a chunk is made,
so that a full disk is an error there and not a SIGBUS in the middle of a row.
"""

import mmap
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ackworth.history.schema import ROWS_PER_CHUNK, VERSION, Table
from ackworth.model.errors import BadRecord

HEADER = 4096
_MAGIC = 0x4C4F4F50534B4341  # "ACKSPOOL"
_MAGIC_AT, _VERSION_AT, _CAPACITY_AT, _COUNT_AT = range(4)

Columns = dict[str, npt.NDArray[Any]]


class Spool:
    """Appends the events of one series. One process at a time writes a series."""

    def __init__(self, directory: Path, table: Table, series: str, rows_per_chunk: int = ROWS_PER_CHUNK) -> None:
        self._directory = directory / table.name
        self._directory.mkdir(parents=True, exist_ok=True)
        self._table = table
        self._series = series
        self._rows = rows_per_chunk
        self._number = 1 + max((n for s, n, _ in chunks(directory, table) if s == series), default=-1)
        self._open()

    def append(self, count: int, **columns: npt.NDArray[Any] | int) -> None:
        """Add rows; a column is an array of `count` entries or one value for all."""
        done = 0
        while done < count:
            if self._used == self._rows:
                self._number += 1
                self._open()
            step = min(count - done, self._rows - self._used)
            for name, target in self._columns.items():
                value = columns[name]
                target[self._used : self._used + step] = value if isinstance(value, int) else value[done : done + step]
            self._used += step
            self._header[_COUNT_AT] = self._used
            done += step

    def _open(self) -> None:
        path = self._directory / f"{self._series}-{self._number:06d}.chunk"
        beside = path.with_name(f".{path.name}.new")
        offsets, size = _offsets(self._table, self._rows)
        with beside.open("w+b") as file:
            os.posix_fallocate(file.fileno(), 0, size)
            memory = np.frombuffer(mmap.mmap(file.fileno(), size), np.uint8)
        self._header = memory[:HEADER].view(np.int64)
        self._columns = _views(self._table, memory, offsets, self._rows)
        self._header[_VERSION_AT] = VERSION
        self._header[_CAPACITY_AT] = self._rows
        self._header[_MAGIC_AT] = _MAGIC
        self._used = 0
        beside.rename(path)


def chunks(spool: Path, table: Table) -> Iterator[tuple[str, int, Path]]:
    """(series, number, path) of every chunk of a table, in order."""
    for path in sorted((spool / table.name).glob("*.chunk")):
        match = re.fullmatch(r"(.+)-(\d{6,})\.chunk", path.name)
        if match and not path.name.startswith("."):
            yield match[1], int(match[2]), path


def read_chunk(path: Path, table: Table) -> Columns:
    """The whole rows of a chunk, as copies. Raises BadRecord."""
    try:
        memory = np.fromfile(path, np.uint8)
    except OSError as error:
        raise BadRecord(
            f"{path}: cannot be read ({error.strerror}): the record is damaged, run the plan again"
        ) from error
    header = memory[: min(len(memory), HEADER) // 8 * 8].view(np.int64)
    if len(header) <= _COUNT_AT or header[_MAGIC_AT] != _MAGIC or header[_VERSION_AT] != VERSION:
        raise BadRecord(f"{path}: not a chunk of Ackworth's spool: the record is damaged, run the plan again")
    capacity, count = int(header[_CAPACITY_AT]), int(header[_COUNT_AT])
    offsets, size = _offsets(table, capacity) if 0 <= count <= capacity <= ROWS_PER_CHUNK else ([], -1)
    if len(memory) != size:
        raise BadRecord(f"{path}: {len(memory)} bytes where {size} belong: the record is damaged, run the plan again")
    return {name: column[:count] for name, column in _views(table, memory, offsets, capacity).items()}


def rows_in(header: npt.NDArray[np.int64]) -> int:
    """How many rows of a chunk are whole, from its header alone: cheap enough to watch a run with."""
    return int(header[_COUNT_AT]) if header[_MAGIC_AT] == _MAGIC else 0


def dtypes(table: Table) -> Mapping[str, np.dtype[Any]]:
    return {column.name: np.dtype(column.type) for column in table.columns}


def _offsets(table: Table, rows: int) -> tuple[list[int], int]:
    """Where each column begins, and the size of the file; columns begin on 64-byte boundaries."""
    offsets, at = [], HEADER
    for dtype in dtypes(table).values():
        offsets.append(at)
        at += -(-rows * dtype.itemsize // 64) * 64
    return offsets, at


def _views(table: Table, memory: npt.NDArray[np.uint8], offsets: list[int], rows: int) -> Columns:
    return {
        name: memory[at : at + rows * dtype.itemsize].view(dtype)
        for at, (name, dtype) in zip(offsets, dtypes(table).items(), strict=True)
    }

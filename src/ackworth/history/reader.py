"""Opens the record of a trial, and says at once if it is not ours, not whole or not readable.

Only footers are read here: what a segment is, its row groups, and the bounds of their columns. The
pages come later, where they are judged, and carry checksums of their own.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from ackworth.history.meta import End, Trial, parse_end, parse_trial
from ackworth.history.schema import TABLES, Table
from ackworth.model.errors import BadRecord

_SEGMENT = re.compile(r"(?P<series>.+)-(?P<number>\d{6,})\.parquet")


@dataclass(frozen=True)
class RowGroup:
    """The unit of work: some consecutive rows of one series."""

    where: str  # the trial's directory, path or URI
    table: str
    series: str
    number: int  # of the segment within its series
    index: int  # of the row group within its segment
    rows: int
    bounds: Mapping[str, tuple[int, int]]  # lowest and highest value of each column of numbers

    def constant(self, column: str) -> int | None:
        """The value of a column that is the same in all rows."""
        low, high = self.bounds[column]
        return low if low == high else None

    @property
    def place(self) -> tuple[str, str, int, int]:
        """Its place in the record; within a series, in the order of the events."""
        return self.table, self.series, self.number, self.index

    @property
    def path(self) -> str:
        return f"{self.where}/record/{self.table}/{self.series}-{self.number:06d}.parquet"


@dataclass(frozen=True)
class Record:
    where: str
    trial: Trial
    end: End | None  # None: the run was killed
    groups: tuple[RowGroup, ...]  # of all tables; a series' row groups in their order

    def of(self, table: str) -> tuple[RowGroup, ...]:
        return tuple(group for group in self.groups if group.table == table)


def open_record(where: str | Path) -> Record:
    """The record of a trial in a directory or at any URI that pyarrow understands."""
    # Workers may run elsewhere: a path must say the same to all.
    base = str(where).rstrip("/") if "://" in str(where) else str(Path(where).absolute())
    files, path = filesystem(base)
    trial = parse_trial(_text(files, f"{path}/trial.json", base), f"{base}/trial.json")
    end = None
    if files.get_file_info(f"{path}/end.json").type == fs.FileType.File:
        end = parse_end(_text(files, f"{path}/end.json", base), f"{base}/end.json")
    groups = [g for table in TABLES.values() for g in _table_groups(files, base, path, table)]
    return Record(base, trial, end, tuple(groups))


def filesystem(where: str) -> tuple[fs.FileSystem, str]:
    """The file system of a path or a URI, and the path within it."""
    if "://" not in where:
        return fs.LocalFileSystem(), where
    try:
        found, path = fs.FileSystem.from_uri(where)
    except (pa.ArrowInvalid, OSError) as error:
        raise BadRecord(f"{where}: no such place ({error}): name a directory or a URI of a trial") from error
    return found, path


def open_segment(path: str) -> pq.ParquetFile:
    """A segment, for reading. Raises BadRecord if it is not a whole Parquet file."""
    files, inside = filesystem(path)
    try:
        source = pa.memory_map(inside) if isinstance(files, fs.LocalFileSystem) else files.open_input_file(inside)
        return pq.ParquetFile(source, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, error) from error


def unreadable(path: str, error: Exception) -> BadRecord:
    detail = str(error).splitlines()[0] if str(error) else type(error).__name__
    return BadRecord(f"{path}: not a readable segment ({detail}): restore the file, or run the plan again")


def read_table(group: RowGroup, columns: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of a small row group, one dictionary each."""
    try:
        with open_segment(group.path) as file:
            rows: list[dict[str, Any]] = file.read_row_group(group.index, list(columns)).to_pylist()
            return rows
    except (pa.ArrowException, OSError) as error:
        raise unreadable(group.path, error) from error


def _text(files: fs.FileSystem, path: str, base: str) -> str:
    try:
        with files.open_input_stream(path) as stream:
            return bytes(stream.read()).decode()
    except FileNotFoundError as error:
        raise BadRecord(
            f"{base}: no {path.rpartition('/')[2]} in it: name the directory of a trial that `ackworth run` made"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadRecord(f"{path}: cannot be read ({error}): the record is damaged, run the plan again") from error


def _table_groups(files: fs.FileSystem, base: str, path: str, table: Table) -> Iterator[RowGroup]:
    expected: dict[str, int] = {}
    for series, number, name in sorted(_segments(files, f"{base}/record/{table.name}", f"{path}/record/{table.name}")):
        if number != expected.get(series, 0):
            missing = f"{series}-{expected.get(series, 0):06d}.parquet"
            raise BadRecord(f"{base}/record/{table.name}/{missing}: missing, later ones are there: restore it")
        expected[series] = number + 1
        yield from _segment_groups(base, table, series, number, name)


def _segments(files: fs.FileSystem, base: str, path: str) -> Iterator[tuple[str, int, str]]:
    try:
        listed = files.get_file_info(fs.FileSelector(path, allow_not_found=True))
    except OSError as error:
        raise BadRecord(f"{base}: cannot be listed ({error}): restore it, or run the plan again") from error
    for found in listed:
        if found.base_name.startswith("."):
            continue  # not complete: its events are still in the spool
        match = _SEGMENT.fullmatch(found.base_name)
        if match is None:
            raise BadRecord(f"{base}/{found.base_name}: not a segment of a record: move it away")
        yield match["series"], int(match["number"]), f"{base}/{found.base_name}"


def _segment_groups(base: str, table: Table, series: str, number: int, path: str) -> Iterator[RowGroup]:
    with open_segment(path) as file:
        if not file.schema_arrow.equals(table.arrow, check_metadata=False) or not _is_ours(file, table):
            raise BadRecord(f"{path}: not a segment of table '{table.name}' of this record version: move it away")
        for index in range(file.num_row_groups):
            meta = file.metadata.row_group(index)
            yield RowGroup(base, table.name, series, number, index, meta.num_rows, _bounds(meta, table, path))


def _is_ours(file: pq.ParquetFile, table: Table) -> bool:
    written, expected = file.schema_arrow.metadata or {}, table.arrow.metadata
    return all(written.get(key) == value for key, value in expected.items())


def _bounds(meta: pq.RowGroupMetaData, table: Table, path: str) -> dict[str, tuple[int, int]]:
    bounds = {}
    for place, column in enumerate(table.columns):
        if column.type == "string":
            continue
        statistics = meta.column(place).statistics
        if statistics is None or not statistics.has_min_max:
            raise BadRecord(f"{path}: column '{column.name}' has no bounds: not written by Ackworth, move it away")
        bounds[column.name] = (statistics.min, statistics.max)
    return bounds

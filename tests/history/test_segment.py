"""Segments: cut where they should be, complete once they have their name, laid out as agreed."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from ackworth.history.schema import MARK, SENT
from ackworth.history.segment import SegmentWriter


def rows(first: int, count: int) -> dict[str, np.ndarray]:
    seqs = np.arange(first, first + count, dtype=np.int64)
    same = np.zeros(count, np.int16)
    return {"producer": same, "topic": same, "seq": seqs, "t": seqs + 100, "late": np.zeros(count, np.int64)}


def sizes(path: Path) -> list[int]:
    meta = pq.read_metadata(path)
    return [meta.row_group(n).num_rows for n in range(meta.num_row_groups)]


def test_batches_of_any_size_become_row_groups_and_segments(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path, SENT, "0", rows_per_group=10, rows_per_segment=20)
    done = [path.name for first, count in ((0, 7), (7, 26), (33, 1)) for path in writer.write(rows(first, count))]
    assert done == ["0-000000.parquet"]
    assert [path.name for path in writer.close()] == ["0-000001.parquet"]
    files = sorted((tmp_path / "sent").iterdir())
    assert [sizes(path) for path in files] == [[10, 10], [10, 4]]
    read = pq.ParquetDataset(files).read(["seq"])["seq"].to_pylist()
    assert read == list(range(34))


def test_a_segment_has_its_name_only_when_it_is_whole(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path, SENT, "0", 7, rows_per_group=2, rows_per_segment=4)
    writer.write(rows(0, 3))
    assert [path.name for path in (tmp_path / "sent").iterdir()] == [".0-000007.parquet"]
    writer.write(rows(3, 1))
    assert [path.name for path in (tmp_path / "sent").iterdir()] == ["0-000007.parquet"]
    assert writer.number == 8


def test_nothing_written_is_no_segment(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path, SENT, "0")
    assert writer.write(rows(0, 0)) == []
    assert writer.close() == []
    assert list((tmp_path / "sent").iterdir()) == []


def test_an_error_leaves_no_segment(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), SegmentWriter(tmp_path, SENT, "0", rows_per_group=2) as writer:
        writer.write(rows(0, 3))
        raise RuntimeError
    assert not list((tmp_path / "sent").glob("0-*"))


def test_the_layout(tmp_path: Path) -> None:
    with SegmentWriter(tmp_path, SENT, "0") as writer:
        writer.write(rows(0, 10))
    group = pq.read_metadata(tmp_path / "sent" / "0-000000.parquet").row_group(0)
    columns = {group.column(n).path_in_schema: group.column(n) for n in range(group.num_columns)}
    assert "DELTA_BINARY_PACKED" in columns["seq"].encodings
    assert "RLE_DICTIONARY" in columns["topic"].encodings
    assert (columns["seq"].compression, columns["topic"].compression) == ("UNCOMPRESSED", "SNAPPY")


def test_text(tmp_path: Path) -> None:
    with SegmentWriter(tmp_path, MARK, "run") as writer:
        at = np.array([5], np.int64)
        words = {"what": ["fault"], "name": ["kill"], "node": ["a"], "detail": ["{}"]}
        writer.write({**words, "t_begin": at, "t_end": at + 1})
    assert pq.read_table(tmp_path / "mark" / "run-000000.parquet").to_pylist() == [
        {"what": "fault", "name": "kill", "node": "a", "t_begin": 5, "t_end": 6, "detail": "{}"}
    ]

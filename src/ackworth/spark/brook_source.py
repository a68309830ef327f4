"""`spark.read.format("brook")` and `spark.readStream.format("brook")`: a topic of Brook as a data frame.

1. Nothing is claimed and nothing acked: whoever reads is nobody's group, and sees what is stored.
2. Offsets are dense and in the order of commits. So a range of offsets below the topic's end, fixed when the
   query is planned, holds the same messages whenever it is read: a partition is a range, and so is a micro-batch.
3. A stream's progress is the next offset, which Spark keeps in its checkpoint. What was deleted before the
   stream came to it is missing from its range, and is an error unless `failOnDataLoss` is false.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from ackworth.model.errors import BadInput
from ackworth.spark.brook_options import Options, read_options
from ackworth.spark.brook_rows import SCHEMA, to_rows
from brook import Brook, Piece
from brook.packing import cut

# So many messages at most are read from the queue at a time.
_ROWS = 10_000


def register(spark: SparkSession) -> None:
    """Let the session know the format `brook`."""
    spark.dataSource.register(BrookSource)


class BrookSource(DataSource):  # type: ignore[misc]
    @classmethod
    def name(cls) -> str:
        return "brook"

    def schema(self) -> StructType:
        return SCHEMA

    def reader(self, schema: StructType) -> "TopicReader":
        return TopicReader(read_options(self.options, streaming=False))

    def streamReader(self, schema: StructType) -> "TopicStreamReader":  # noqa: N802
        return TopicStreamReader(read_options(self.options, streaming=True))


class Range(InputPartition):  # type: ignore[misc]
    """The offsets from `first` to before `end`."""

    def __init__(self, first: int, end: int) -> None:
        super().__init__((first, end))
        self.first, self.end = first, end


class TopicReader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, options: Options) -> None:
        self._options = options

    def partitions(self) -> Sequence[Range]:
        options = self._options
        with options.open() as queue:
            first, end = (_offset(queue, options, position) for position in (options.starting, options.ending))
        # Where there is no partition, Spark would have None read.
        return _ranges(first, end, options.rows_per_partition) or [Range(first, first)]

    def read(self, partition: Range) -> Iterator[pa.RecordBatch]:
        return map(to_rows, _stored(self._options, partition))


class TopicStreamReader(DataSourceStreamReader):  # type: ignore[misc]
    """A place in the stream is {"offset": the next message's}."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        with self._options.open() as queue:
            return {"offset": _offset(queue, self._options, self._options.starting)}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        rows = self._options.rows_per_trigger
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        with self._options.open() as queue:
            end = _offset(queue, self._options, "latest")
        if end < start["offset"]:
            raise BadInput(
                f"{self._options}: ends at offset {end}, the checkpoint is at {start['offset']}: "
                "this is not the queue that the stream has read: begin with a new checkpoint"
            )
        return {"offset": min(end, start["offset"] + limit.max_rows) if isinstance(limit, ReadMaxRows) else end}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[Range]:
        return _ranges(start["offset"], end["offset"], self._options.rows_per_partition)

    def read(self, partition: Range) -> Iterator[pa.RecordBatch]:
        missing = partition.end - partition.first
        for pieces in _stored(self._options, partition):
            missing -= sum(piece.messages for piece in pieces)
            yield to_rows(pieces)
        if missing and self._options.fail_on_data_loss:
            raise BadInput(
                f"{self._options}: {missing} messages of the offsets {partition.first} to {partition.end - 1} were "
                "deleted before they were read: keep them for longer, or set failOnDataLoss to false to go on"
            )


def _offset(queue: Brook, options: Options, position: str | int) -> int:
    return queue.listen(options.topic, start=position).next_offsets[options.topic]  # type: ignore[arg-type]


def _ranges(first: int, end: int, rows: int) -> list[Range]:
    return [Range(begin, min(begin + rows, end)) for begin in range(first, end, rows)]


def _stored(options: Options, wanted: Range) -> Iterator[list[Piece]]:
    """What is stored of the range, a few runs at a time."""
    with options.open() as queue:
        listener = queue.listen(options.topic, start=wanted.first)
        while listener.next_offsets[options.topic] < wanted.end and (batch := listener.receive(_ROWS)):
            pieces = [cut(p, wanted.first, wanted.end) for p in batch.pieces if p.first < wanted.end]
            if pieces:
                yield pieces
            listener.done(batch)

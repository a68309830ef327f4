"""A job in Spark's own terms: a data source whose partitions are tasks, and a reduction by key.

`spark.read.format("ackworth")` gives one row a partial; they are shuffled by (measurement, key), so that
only what crosses a bucket crosses the network, and reduced by a plain Python function. Works the same
on a classic session and through Spark Connect, and needs no pandas in the workers.
"""

import base64
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from ackworth.pipeline.measurement import dumps, loads
from ackworth.pipeline.memory import keep_memory
from ackworth.pipeline.work import Job, Result, Task, run_reduction, run_task

_SCHEMA = StructType(
    [
        StructField("measurement", StringType()),
        StructField("key", LongType()),
        StructField("value", BinaryType()),
    ]
)
_ARROW = pa.schema([("measurement", pa.string()), ("key", pa.int64()), ("value", pa.binary())])

# Partials travel to Spark in batches of at least so many bytes.
_BATCH = 1 << 22


class Partials(DataSource):  # type: ignore[misc]
    """The partial results of a job, one row each."""

    @classmethod
    def name(cls) -> str:
        return "ackworth"

    def schema(self) -> StructType:
        return _SCHEMA

    def reader(self, schema: StructType) -> "PartialsReader":
        return PartialsReader(_decoded(self.options["job"]))


class PartialsReader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, job: Job) -> None:
        self._tasks = job.tasks
        self._job = job.without_tasks()

    def partitions(self) -> Sequence[InputPartition]:
        tasks, self._tasks = self._tasks, ()  # a task need not know the others
        return [InputPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        keep_memory()
        task: Task = partition.value
        waiting: list[Result] = []
        size = 0
        for result in run_task(self._job, task):
            waiting.append(result)
            size += len(result.value)
            if size >= _BATCH:
                yield _batch(waiting)
                waiting, size = [], 0
        yield _batch(waiting)


def run_on_spark(spark: SparkSession, job: Job) -> list[Result]:
    """All reduced results of a job."""
    spark.dataSource.register(Partials)
    shared = job.without_tasks()

    def reduced(measurement: str, key: int, values: list[bytearray]) -> bytes:
        return run_reduction(shared, measurement, key, [bytes(value) for value in values])

    reduction = F.udf(reduced, BinaryType(), useArrow=False)
    rows = (
        spark.read.format("ackworth")
        .option("job", _encoded(job))
        .load()
        .groupBy("measurement", "key")
        .agg(F.collect_list("value").alias("values"))
        .select("measurement", "key", reduction("measurement", "key", "values").alias("value"))
        .collect()
    )
    return [Result(row.measurement, row.key, bytes(row.value)) for row in rows]


def _batch(results: Sequence[Result]) -> pa.RecordBatch:
    # pa.array() would import pandas, which takes seconds.
    keys = np.array([r.key for r in results], np.int64)
    return pa.RecordBatch.from_arrays(
        [
            _strings([r.measurement.encode() for r in results], pa.string()),
            pa.Array.from_buffers(pa.int64(), len(keys), [None, pa.py_buffer(keys)]),
            _strings([r.value for r in results], pa.binary()),
        ],
        schema=_ARROW,
    )


def _strings(values: list[bytes], kind: pa.DataType) -> pa.Array:
    ends = np.cumsum([0, *(len(value) for value in values)], dtype=np.int32)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))])


def _encoded(job: Job) -> str:
    return base64.b64encode(dumps(job)).decode()


def _decoded(text: str) -> Job:
    job: Job = loads(base64.b64decode(text))
    return job

"""A job in Spark's own terms: a row for each task, a function that folds it, and a reduction by key.

Each task is a partition of its own; what it gives is exploded into one row a partial, shuffled by
(measurement, key), so that only what crosses a bucket crosses the network, and reduced by a second
function. Both are plain Python functions: they work the same on a classic session and through Spark
Connect, need no pandas in the workers, and share those workers. (A Python data source would have
Spark start three more interpreters, one after the other, before the first task begins.)
"""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, BinaryType, LongType, StringType, StructField, StructType

from ackworth.pipeline.measurement import dumps, loads
from ackworth.pipeline.memory import keep_memory
from ackworth.pipeline.work import Job, Result, run_reduction, run_task

_PARTIAL = StructType(
    [
        StructField("measurement", StringType()),
        StructField("key", LongType()),
        StructField("value", BinaryType()),
    ]
)


def run_on_spark(spark: SparkSession, job: Job) -> list[Result]:
    """All reduced results of a job."""
    shared = job.without_tasks()

    def folded(task: bytearray) -> list[tuple[str, int, bytes]]:
        keep_memory()
        return [(name, key, value) for name, key, value in run_task(shared, loads(bytes(task)))]

    def reduced(measurement: str, key: int, values: list[bytearray]) -> bytes:
        return run_reduction(shared, measurement, key, [bytes(value) for value in values])

    # 'Nondeterministic' keeps Spark from calling it once more to see whether there is something to explode.
    fold = F.udf(folded, ArrayType(_PARTIAL), useArrow=False).asNondeterministic()
    # A task gets its own part of the record, and none of the others'.
    tasks = F.array(*(F.lit(dumps(task)) for task in job.tasks))
    reduction = F.udf(reduced, BinaryType(), useArrow=False)
    rows = (
        spark.range(0, len(job.tasks), 1, len(job.tasks))
        .select(fold(tasks[F.col("id")]).alias("partials"))
        .select(F.inline("partials"))
        .groupBy("measurement", "key")
        .agg(F.collect_list("value").alias("values"))
        .select("measurement", "key", reduction("measurement", "key", "values").alias("value"))
        .collect()
    )
    return [Result(row.measurement, row.key, bytes(row.value)) for row in rows]

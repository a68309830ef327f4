"""A topic of Brook as a data frame, on real Spark: batches, streams, checkpoints, and what was deleted meanwhile."""

import contextlib
import sqlite3
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from ackworth.pipeline.session import Session
from ackworth.spark.brook_source import register
from brook import Brook, Outgoing, Run
from brook.urls import sqlite_path
from tests.docs.pages import blocks

pytestmark = pytest.mark.spark

SENT = 1_700_000_000.0


@pytest.fixture(scope="module")
def reads(spark: Session) -> SparkSession:
    register(spark.spark)
    return spark.spark


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'queue.db'}"


def send(url: str, messages: int, topic: str = "t") -> None:
    """Each is a run of its own, so that each can be deleted on its own."""
    with Brook(url, clock=lambda: SENT) as queue:
        [topic_id] = queue.create_topics([topic])
        queue.append_runs([Run(topic_id, 1, b"%d" % n) for n in range(messages)])


def delete(url: str, first: int, end: int) -> None:
    """As an operator may by hand."""
    with contextlib.closing(sqlite3.connect(sqlite_path(url))) as database, database:
        database.execute("DELETE FROM brook_run WHERE place & 0xfffffffffff BETWEEN ? AND ?", (first, end - 1))


def batch(spark: SparkSession, url: str, **options: Any) -> DataFrame:
    frame: DataFrame = spark.read.format("brook").options(url=url, **{"topic": "t", **options}).load()
    return frame


def offsets(frame: DataFrame) -> list[int]:
    return sorted(row.offset for row in frame.select("offset").collect())


class Stream:
    """A stream of the topic into files, from a checkpoint."""

    def __init__(self, spark: SparkSession, url: str, folder: Path) -> None:
        self._spark, self._url, self._folder = spark, url, folder

    def run(self, change: Callable[[DataFrame], DataFrame] = lambda frame: frame, **options: Any) -> list[int]:
        """Until all that is there has been read; the rows of each micro-batch."""
        frame = self._spark.readStream.format("brook").options(url=self._url, topic="t", **options).load()
        writer = change(frame).writeStream.option("checkpointLocation", str(self._folder / "checkpoint"))
        query = writer.start(str(self._folder / "rows"), "parquet")
        try:
            query.processAllAvailable()
            return [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]]
        finally:
            query.stop()

    @property
    def offsets(self) -> list[int]:
        return offsets(self._spark.read.parquet(str(self._folder / "rows")))


@pytest.fixture
def stream(reads: SparkSession, url: str, tmp_path: Path) -> Stream:
    return Stream(reads, url, tmp_path)


def test_a_row_is_a_message(reads: SparkSession, url: str) -> None:
    with Brook(url, clock=lambda: SENT) as queue:
        queue.send("t", b"\x00a", key="k", tags=["x", "y"], properties={"p": "1"})
        queue.send_many([Outgoing("t", b""), Outgoing("t", b"three", tags=["z"]), Outgoing("u", b"of another topic")])
    sent = datetime.fromtimestamp(SENT)
    assert [tuple(row) for row in batch(reads, url).orderBy("offset").collect()] == [
        (0, sent, "k", ["x", "y"], {"p": "1"}, b"\x00a"),
        (1, sent, None, [], {}, b""),
        (2, sent, None, ["z"], {}, b"three"),
    ]


def test_partitions_are_ranges_of_offsets(reads: SparkSession, url: str) -> None:
    with Brook(url) as queue:
        queue.append(["t"] * 1000, [b"%d" % n for n in range(1000)])
    frame = batch(reads, url, rowsPerPartition=300, startingOffset=50, endingOffset=995)
    rows = frame.select("offset", F.spark_partition_id().alias("part"), F.col("body").cast("string")).collect()
    assert sorted(tuple(row) for row in rows) == [(n, (n - 50) // 300, str(n)) for n in range(50, 995)]


def test_large_and_small_bodies(reads: SparkSession, url: str) -> None:
    sizes = [1_000_000, 1, 0, 70_000, 3_000_000]
    with Brook(url) as queue:
        queue.append(["t"] * len(sizes), [b"x" * size for size in sizes])
    rows = batch(reads, url).orderBy("offset").select(F.length("body")).collect()
    assert [row[0] for row in rows] == sizes


def test_an_empty_topic_has_no_rows(reads: SparkSession, url: str) -> None:
    send(url, 0)
    assert offsets(batch(reads, url)) == []


def test_a_batch_has_what_is_stored(reads: SparkSession, url: str) -> None:
    send(url, 10)
    delete(url, 0, 2)
    delete(url, 5, 7)
    assert offsets(batch(reads, url, rowsPerPartition=3)) == [2, 3, 4, 7, 8, 9]


def test_groups_are_not_disturbed(reads: SparkSession, url: str) -> None:
    send(url, 5)
    with Brook(url) as queue:
        queue.subscribe("g")
        assert offsets(batch(reads, url)) == [0, 1, 2, 3, 4]
        assert queue.lag("g") == 5


def test_a_stream_goes_on_from_its_checkpoint(stream: Stream, url: str) -> None:
    send(url, 5)
    assert stream.run() == [5]
    assert stream.run() == []
    send(url, 3)
    assert stream.run() == [3]
    assert stream.offsets == list(range(8))


def test_a_stream_may_start_at_an_offset_and_go_in_steps(stream: Stream, url: str) -> None:
    send(url, 10)
    assert stream.run(startingOffset=2, maxRowsPerTrigger=3) == [3, 3, 2]
    assert stream.offsets == list(range(2, 10))


def test_a_micro_batch_that_failed_is_read_again(stream: Stream, url: str, tmp_path: Path) -> None:
    send(url, 10)
    flag = str(tmp_path / "mended")

    def fragile(offset: int) -> int:
        if offset == 5 and not Path(flag).exists():
            raise RuntimeError("broken at 5")
        return offset

    change = F.udf(fragile, "long", useArrow=False)
    with pytest.raises(StreamingQueryException, match="broken at 5"):
        stream.run(lambda frame: frame.withColumn("offset", change("offset")), maxRowsPerTrigger=4)
    Path(flag).touch()
    send(url, 2)
    assert stream.run(maxRowsPerTrigger=4) == [4, 4]
    assert stream.offsets == list(range(12))


def test_a_stream_says_what_was_deleted_before_it_came(stream: Stream, url: str) -> None:
    send(url, 4)
    stream.run()
    send(url, 6)
    delete(url, 5, 7)
    with pytest.raises(StreamingQueryException, match="2 messages of the offsets 4 to 9 were deleted before they"):
        stream.run()
    assert stream.run(failOnDataLoss="false") == [4]
    assert stream.offsets == [0, 1, 2, 3, 4, 7, 8, 9]


def test_a_checkpoint_of_another_queue(stream: Stream, url: str, tmp_path: Path) -> None:
    send(url, 4)
    stream.run()
    for file in tmp_path.glob("queue.db*"):
        file.unlink()
    send(url, 2)
    with pytest.raises(StreamingQueryException, match="ends at offset 2, the checkpoint is at 4: this is not the"):
        stream.run()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"topic": "nope"}, "UnknownTopic: 'nope': no such topic"),
        ({"url": "oracle://host"}, "BadUrl: 'oracle://host'"),
        ({"startingOffsets": "3"}, "no option 'startingoffsets': did you mean 'startingOffset'"),
    ],
)
def test_what_is_wrong_is_said(reads: SparkSession, url: str, options: dict[str, str], said: str) -> None:
    send(url, 1)
    with pytest.raises(AnalysisException) as raised:
        batch(reads, **{"url": url, **options}).collect()
    assert said in str(raised.value)


def test_a_wrong_url_makes_no_file(reads: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(AnalysisException, match=r"there is no .*: give the URL of a queue that exists"):
        batch(reads, f"sqlite:///{tmp_path / 'typo.db'}").collect()
    assert list(tmp_path.iterdir()) == []


def test_the_how_to_page(spark: Session, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Brook(url) as queue:
        queue.send_many([Outgoing("orders", b"one", key="a"), Outgoing("orders", b"two", key="a")])
    known = {"spark": spark.spark}
    for block in blocks("docs/how-to/read-a-queue-with-spark.md", "python"):
        exec(block.replace("sqlite:////srv/orders.db", url).replace("/srv/", f"{tmp_path}/"), known)
    assert "|  a|    2|" in capsys.readouterr().out
    known["query"].processAllAvailable()
    known["query"].stop()
    rows = spark.spark.read.parquet(str(tmp_path / "orders-parquet")).orderBy("offset").collect()
    assert [(row.offset, row.body) for row in rows] == [(0, "one"), (1, "two")]

"""How far a job is, asked of Spark while it runs."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

_INTERVAL = 0.5  # seconds

Report = Callable[[int, int], None]  # tasks done, tasks in all


@contextmanager
def watched(spark: SparkSession, report: Report) -> Iterator[None]:
    """Report the tasks of whatever the session does meanwhile."""
    with _watched_remotely(spark, report) if _is_remote(spark) else _watched_here(spark, report):
        yield


def _is_remote(spark: Any) -> bool:
    return hasattr(spark, "registerProgressHandler") and not hasattr(spark, "_jsparkSession")


@contextmanager
def _watched_remotely(spark: Any, report: Report) -> Iterator[None]:
    def handler(stages: Any, **_: Any) -> None:
        stages = list(stages or ())
        if stages:
            report(sum(s.num_completed_tasks for s in stages), sum(s.num_tasks for s in stages))

    spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)


@contextmanager
def _watched_here(spark: Any, report: Report) -> Iterator[None]:
    over = threading.Event()
    tracker = spark.sparkContext.statusTracker()

    def watch() -> None:
        while not over.wait(_INTERVAL):
            stages = [
                tracker.getStageInfo(stage)
                for job in tracker.getActiveJobsIds()
                for stage in tracker.getJobInfo(job).stageIds
            ]
            known = [stage for stage in stages if stage is not None]
            if known:
                report(sum(s.numCompletedTasks for s in known), sum(s.numTasks for s in known))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()

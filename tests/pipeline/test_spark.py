"""The same judging on real Spark: local, on a standalone cluster, through Spark Connect."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ackworth.model.result import TrialResult
from ackworth.pipeline.session import Session, session
from ackworth.pipeline.source import run_on_spark
from ackworth.pipeline.trial import judge_trial
from ackworth.pipeline.work import Job
from ackworth.testing.engine import Inline
from ackworth.testing.synthetic import Planted, write_synthetic
from tests.pipeline.servers import connect_server, standalone_cluster

pytestmark = pytest.mark.spark

PLANTED = Planted(200_000, producers=8, consumers=4, topics=64)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("synthetic")
    write_synthetic(directory, PLANTED)
    return directory


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python that has what ours has, but not Ackworth, which is installed through a .pth file."""
    import numpy

    path = tmp_path_factory.mktemp("bare") / "python"
    packages = Path(numpy.__file__).parents[1]
    path.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec {sys.executable} -S "$@"\n')
    path.chmod(0o755)
    return str(path)


def is_as_planted(result: TrialResult) -> None:
    account = dict(result["account"])
    assert account.pop("reasons") == {"full": PLANTED.account["refused"], "timeout": PLANTED.account["unknown"]}
    assert account == PLANTED.account
    assert result["groups"] == [PLANTED.group]
    ids = {check["name"]: check["ids"] for check in result["checks"]}
    assert ids["lost"] == PLANTED.ids("lost")
    assert ids["resurrected"] == PLANTED.ids("resurrected")
    assert ids["duplicates"] == PLANTED.ids("repeated_for_nothing")
    assert ids["reordered"] == PLANTED.ids("reordered")
    assert result["losses"][0]["place"] == "tail"
    assert result["notes"] == []


def plain(result: TrialResult) -> TrialResult:
    return {**result, "judging": {}}


def test_planted_truth_is_found(record: Path, spark: Session) -> None:
    told: list[tuple[str, int, int]] = []
    result = judge_trial(record, spark, lambda *progress: told.append(progress))
    is_as_planted(result)
    assert result["judging"]["events"] == sum(
        (
            PLANTED.account["sent"],
            PLANTED.account["sent"] - PLANTED.account["unanswered"],
            PLANTED.group["delivered"],
            1,
        )
    )
    assert all(0 <= done <= tasks for _, done, tasks in told)


def test_spark_and_one_process_agree(record: Path, spark: Session) -> None:
    assert plain(judge_trial(record, spark)) == plain(judge_trial(record, Inline(5)))


def test_workers_do_without_pandas(record: Path, spark: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[Job] = []

    class Spy:
        parallel = 1

        def run(self, job: Job, progress: object) -> object:
            jobs.append(job)
            return run_on_spark(spark.spark, replace(job, requests={}))

        def about(self) -> dict[str, str]:
            return {}

    judge_trial(record, Spy())  # type: ignore[arg-type]
    loaded = spark.spark.range(4).rdd.map(lambda _: "pandas" in sys.modules).collect()
    assert not any(loaded)


@pytest.mark.real
@pytest.mark.timeout(240)
def test_on_a_standalone_cluster(
    record: Path, bare_python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", bare_python)
    with standalone_cluster(tmp_path) as master, _alone(), session(master) as cluster:
        result = judge_trial(record, cluster)
    is_as_planted(result)
    assert result["judging"]["master"] == master

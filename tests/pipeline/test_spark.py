"""The same judging on real Spark: local, on a standalone cluster, through Spark Connect."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from pyspark.sql import functions as F  # noqa: N812

from ackworth.model.result import TrialResult
from ackworth.pipeline.session import Session
from ackworth.pipeline.trial import judge_trial
from ackworth.testing.engine import Inline
from ackworth.testing.synthetic import Planted, write_synthetic
from tests.pipeline.servers import connect_server, standalone_cluster

pytestmark = pytest.mark.spark

PLANTED = Planted(200_000, producers=8, consumers=4)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("synthetic")
    write_synthetic(directory, PLANTED)
    return directory


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python that has what ours has, but not Ackworth, which is installed through a .pth file."""
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


def test_workers_do_without_pandas(record: Path, spark: Session) -> None:
    judge_trial(record, spark)
    loaded = F.udf(lambda: "pandas" in sys.modules, "boolean", useArrow=False)
    assert not any(row[0] for row in spark.spark.range(8).select(loaded()).collect())


SCRIPT = """
import json, sys
from pathlib import Path
from ackworth.pipeline.session import session
from ackworth.pipeline.trial import judge_trial
archives = Path(sys.argv[3]) if len(sys.argv) > 3 else None
with session(sys.argv[2], archives) as spark:
    print(json.dumps(judge_trial(sys.argv[1], spark)))
"""


def judged_apart(record: Path, master: str, folder: Path, *more: str, **environment: str) -> TrialResult:
    """In a process of its own, which leaves nothing behind and says nothing else."""
    (folder / "tmp").mkdir()
    env = {**os.environ, "TMPDIR": str(folder / "tmp"), **environment}
    command = [sys.executable, "-c", SCRIPT, str(record), master, *more]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert list((folder / "tmp").iterdir()) == []
    result: TrialResult = json.loads(done.stdout)
    assert result["judging"]["master"] == master
    return result


@pytest.mark.real
def test_a_session_of_its_own_is_quiet_and_leaves_nothing(record: Path, tmp_path: Path) -> None:
    is_as_planted(judged_apart(record, "local[2]", tmp_path, str(tmp_path / "archives")))
    assert [path.suffix for path in (tmp_path / "archives").iterdir()] == [".jsa"]


@pytest.mark.real
def test_on_a_standalone_cluster_that_lacks_ackworth(record: Path, bare_python: str, tmp_path: Path) -> None:
    with standalone_cluster(tmp_path) as master:
        is_as_planted(judged_apart(record, master, tmp_path, PYSPARK_PYTHON=bare_python))


@pytest.mark.real
def test_through_a_connect_server_that_lacks_ackworth(record: Path, bare_python: str, tmp_path: Path) -> None:
    with connect_server(tmp_path, python=bare_python) as url:
        is_as_planted(judged_apart(record, url, tmp_path))


@pytest.mark.real
def test_a_master_that_is_none(record: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(record), "nonsense"], capture_output=True, text=True, check=False
    )
    reason = "Master must either be yarn or start with spark, k8s, or local"
    assert done.stderr.splitlines()[-1].endswith(f"Spark did not start ({reason}): check --master and JAVA_HOME")

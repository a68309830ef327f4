"""The how-to pages work: their files are written where the page says, and used as the page says."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ackworth.cli import main as cli
from ackworth.plan import resolve
from tests.docs.pages import ROOT, blocks, files

BROKER = "docs/how-to/add-a-broker.md"
PLAN = "docs/how-to/write-a-plan.md"
FAULT = "docs/how-to/add-a-fault-or-a-measurement.md"


class Tree:
    """A copy of the source into which a page's files are written."""

    def __init__(self, root: Path, page: str) -> None:
        self.root = root
        shutil.copytree(ROOT / "src", root / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        for name, content in files(page).items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
            path.chmod(0o755 if path.parent.name == "bin" else 0o644)

    def python(self, *arguments: str) -> str:
        path = f"{self.root / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, "PYTHONPATH": str(self.root / "src"), "PATH": path},
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def follow(self, *arguments: str) -> str:
        return self.python(str(ROOT / "tests" / "docs" / "follow.py"), *arguments)

    def trial(self, *arguments: str) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(self.follow("trial", *arguments))
        return result


@pytest.mark.real
def test_the_broker_of_the_page_works(tmp_path: Path) -> None:
    tree = Tree(tmp_path, BROKER)
    listed = json.loads(tree.python("-m", "ackworth.cli.main", "brokers", "--json"))["brokers"]
    assert [b["missing"] for b in listed if b["name"] == "pail"] == [None]
    tree.follow("driver", "pail", "brokers")
    result = tree.trial("pail.yaml", "trial")
    assert result["verdict"] == "held", result["sentence"]
    assert [fault["name"] for fault in result["faults"]] == ["kill"]
    assert result["account"]["sent"] == 200_000 and result["account"]["acked"] > 100_000


def test_the_broker_of_the_page_says_what_is_missing(tmp_path: Path) -> None:
    tree = Tree(tmp_path, BROKER)
    (tmp_path / "bin" / "pail-server").unlink()
    listed = json.loads(tree.python("-m", "ackworth.cli.main", "brokers", "--json"))["brokers"]
    assert [b["missing"] for b in listed if b["name"] == "pail"] == ["pail-server is not on PATH: install Pail"]


@pytest.mark.real
def test_the_fault_and_the_measurement_of_the_page_work(tmp_path: Path) -> None:
    result = Tree(tmp_path, FAULT).trial("evicted.yaml", "trial")
    assert result["verdict"] == "held", result["sentence"]
    assert [fault["name"] for fault in result["faults"]] == ["evict"]
    assert any(note.startswith("a topic had ") for note in result["notes"])


@pytest.mark.parametrize("size", ["small", "published"])
@pytest.mark.parametrize("page", [BROKER, PLAN, FAULT])
def test_every_plan_of_a_page_is_right(page: str, size: str, tmp_path: Path) -> None:
    plans = {name: content for name, content in files(page).items() if name.endswith(".yaml")}
    assert plans
    for name, content in plans.items():
        (tmp_path / name).write_text(content)
        assert resolve.trials(resolve.find(str(tmp_path / name)), size)


def test_the_matrix_makes_the_trials_that_the_page_names(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(files(PLAN)["what-safety-costs.yaml"])
    names = [trial.name for trial in resolve.trials(resolve.find(str(path)), "small")]
    assert len(names) == 6
    assert (names[0], names[-1]) == ("undisturbed-durability=full", "killed-durability=off")


def test_errors_read_as_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("orders.yaml").write_text(files(PLAN)["orders.yaml"])
    [*_, shown] = blocks(PLAN, "console")
    said = []
    for line in shown.splitlines():
        if line.startswith("$ ackworth "):
            assert cli.main(shlex.split(line)[2:]) == 2
            said += [line, *capsys.readouterr().err.splitlines()]
    assert said == shown.splitlines()

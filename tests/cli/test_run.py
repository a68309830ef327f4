"""From a plan to a verdict with one command, and from the record to the same verdict with another."""

import json
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from ackworth.cli.main import main

pytestmark = [pytest.mark.real, pytest.mark.spark]

PLAN = """
name: tiny
title: a tiny plan
workload:
  topics: 16
  producers: 2
  consumers: 2
  consume: after
  window: 500
  batch: 500
  drain: {quiet: 300ms}
  phases: [{name: send, messages: 60_000}]
expect: {lost: none}
"""


def ackworth(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ackworth.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


class Done(NamedTuple):
    code: int
    out: str
    err: str


Here = Callable[..., Done]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], inline: None) -> Here:
    """The command in this process and in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: Done(main(list(arguments)), *capsys.readouterr())


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A run that was killed on the way, and held."""
    folder = tmp_path_factory.mktemp("held")
    (folder / "tiny.yaml").write_text(PLAN + "faults: [{kind: kill, at: 50%, down: 50ms}]\n")
    done = ackworth("run", "tiny.yaml", "--out", "run", "--seed", "7", cwd=folder)
    return folder / "run", done


def test_it_says_what_became_of_the_messages(held: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    run, done = held
    assert done.returncode == 0, done.stderr
    assert "✓ HELD  all " in done.stdout and "acked messages were delivered after 1 kill" in done.stdout
    assert "60,000 sent = " in done.stdout
    assert "lost          ✓ held   no lost message" in done.stdout
    assert "Report: run/report.html" in done.stdout
    assert "kill after" in done.stderr and "seed 7" in done.stderr
    result = json.loads((run / "results.json").read_text())
    assert result["seed"] == 7 and result["verdict"] == "held"
    assert result["environment"]["cores"] and result["environment"]["filesystem"]
    suite = ET.parse(run / "junit.xml").getroot()
    assert [case.get("name") for case in suite.iter("testcase")][:2] == ["lost", "resurrected"]
    assert not list(suite.iter("failure")) and not list(suite.iter("error"))
    assert "<html" in (run / "report.html").read_text()


def test_judged_again_it_is_the_same(held: tuple[Path, subprocess.CompletedProcess[str]], here: Here) -> None:
    """Also without Spark, which has judged it first."""
    run, _ = held
    before = json.loads((run / "results.json").read_text())
    done = here("check", str(run), "--json", "--quiet")
    assert (done.code, done.err) == (0, "")
    again = json.loads(done.out)
    for result in (before, again):
        del result["trials"][0]["judging"]
    assert again == before


def test_the_report_is_made_again(held: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    run, _ = held
    (run / "report.html").unlink()
    done = ackworth("report", str(run), cwd=run.parent)
    assert (done.returncode, done.stdout.strip()) == (0, str(run / "report.html"))
    assert (run / "report.html").exists()


def test_what_is_lost_is_broken(tmp_path: Path, here: Here, own_mounts: None) -> None:
    (tmp_path / "tiny.yaml").write_text(PLAN + "faults: [{kind: power-cut, at: 80%, down: 50ms}]\n")
    done = here("run", "tiny.yaml", "--out", "run", "--set", "broker.settings.durability=off")
    assert done.code in (1, 2), done.err  # 2: SQLite could not make sense of what was left
    result = json.loads((tmp_path / "run" / "results.json").read_text())
    assert result["verdict"] != "held"
    if done.code == 1:
        (loss,) = result["trials"][0]["losses"]
        assert loss["fault"] == "power-cut" and loss["count"] > 0


def test_what_cannot_be_had_is_unknown(tmp_path: Path, here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user without root, the power cannot be cut, and nothing else is done in its place."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    (tmp_path / "tiny.yaml").write_text(PLAN + "faults: [{kind: power-cut, at: 50%}]\n")
    done = here("run", "tiny.yaml", "--out", "run", "--quiet")
    assert done.code == 2, done.err
    assert "the fault 'power-cut' cannot be had here: it needs root" in " ".join(done.out.split())
    assert "UNKNOWN" in done.out


def cut_segment(run: Path) -> Path:
    path = sorted(run.glob("trials/trial/record/sent/*.parquet"))[0]
    path.write_bytes(path.read_bytes()[:-100])
    return path


def foreign_segment(run: Path) -> Path:
    path = sorted(run.glob("trials/trial/record/sent/*.parquet"))[0]
    shutil.copy(sorted(run.glob("trials/trial/record/outcome/*.parquet"))[0], path)
    return path


def damaged_page(run: Path) -> Path:
    path = sorted(run.glob("trials/trial/record/sent/*.parquet"))[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 0xFF
    path.write_bytes(data)
    return path


def missing_segments(run: Path) -> Path:
    """Of a whole series, so that the numbers of those that are left have no gap."""
    folder = run / "trials" / "trial" / "record" / "sent"
    for path in folder.glob("p00000-*.parquet"):
        path.unlink()
    return folder


def missing_trial(run: Path) -> Path:
    shutil.rmtree(run / "trials")
    return run


def damaged_trial(run: Path) -> Path:
    path = run / "trials" / "trial" / "trial.json"
    path.write_text(path.read_text()[:200])
    return path


@pytest.mark.parametrize(
    "damage", [cut_segment, foreign_segment, damaged_page, missing_segments, missing_trial, damaged_trial]
)
def test_a_damaged_record_is_named_in_one_line(
    held: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path, here: Here, damage: Callable[[Path], Path]
) -> None:
    shutil.copytree(held[0], tmp_path / "run")
    path = damage(tmp_path / "run")
    done = here("check", str(tmp_path / "run"), "--quiet")
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert line.startswith("ackworth: ") and str(path.name) in line


PRICE = """
name: price
title: a tiny price list
overview: price
workload:
  producers: 2
  window: 500
  batch: 500
  drain: {quiet: 200ms}
  phases: [{name: send, duration: 500ms}]
matrix: {broker: every}
cases:
  full: {}
  half: {workload: {phases: [{name: send, rate: 50% of full, duration: 500ms}]}}
  kill:
    repeats: 2
    faults: [{kind: kill, at: 100ms, within: 200ms, down: 50ms}]
"""


def test_a_price_list(tmp_path: Path, here: Here) -> None:
    (tmp_path / "price.yaml").write_text(PRICE)
    choice = ["--broker", "brook-sqlite", "--set", "broker.settings.durability=normal"]
    done = here("run", "price.yaml", "--out", "run", "--seed", "3", *choice)
    assert done.code == 0, done.err
    assert "Held: 1 of 1 settings kept what is claimed of them." in done.out.replace("✓ HELD  ", "Held: ")
    result = json.loads((tmp_path / "run" / "results.json").read_text())
    [row] = result["price"]
    assert row["settings"] == {"durability": "normal"} and len(row["tolls"][0]["trials"]) == 2
    assert row["tolls"][0]["lost"] == [0, 0]
    fast, half, *_ = result["trials"]
    rate = half["plan"]["workload"]["phases"][0]["rate"]
    assert rate == pytest.approx(fast["throughput"]["acked_per_second"] / 2, rel=0.01)
    assert (tmp_path / "run" / "price.csv").read_text().startswith("broker,version,setting,acked_per_second_min,")
    assert "The price of an ack" in (tmp_path / "run" / "report.html").read_text()


def test_a_trial_is_not_chosen_without_the_one_that_sets_its_rate(tmp_path: Path, here: Here) -> None:
    (tmp_path / "price.yaml").write_text(PRICE)
    name = "brook-sqlite,durability=off"
    done = here("run", "price.yaml", "--broker", "brook-sqlite", "--only", f"half-{name}")
    assert (done.code, done.err.splitlines()) == (
        2,
        [f"ackworth: trial 'half-{name}' takes its rate from 'full-{name}': add --only full-{name}"],
    )


def test_a_run_again_and_compared(
    held: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path, here: Here
) -> None:
    """The same plan and seed; what is not the same any more is told; and the two can be compared."""
    shutil.copytree(held[0], tmp_path / "first")
    record = tmp_path / "first" / "run.json"
    data = json.loads(record.read_text())
    record.write_text(json.dumps({**data, "environment": {**data["environment"], "cores": 1000}}))
    done = here("rerun", "first", "--out", "second")
    assert done.code == 0, done.err
    assert "differs from first: environment.cores: 1000 → " in done.err
    again = json.loads((tmp_path / "second" / "run.json").read_text())
    assert {name: again[name] for name in ("plan", "size", "seed", "sets", "trials")} == {
        name: data[name] for name in ("plan", "size", "seed", "sets", "trials")
    }
    compared = here("compare", "first", "second", "--threshold", "1000")
    assert compared.code == 0, compared.out + compared.err
    assert "✓ no regression" in compared.out
    slower = json.loads((tmp_path / "second" / "results.json").read_text())
    slower["trials"][0]["throughput"]["acked_per_second"] /= 100
    (tmp_path / "second" / "results.json").write_text(json.dumps(slower))
    compared = here("compare", "first", "second", "--json", "--threshold", "80%")
    assert (compared.code, json.loads(compared.out)["verdict"]) == (1, "broken")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare", "a"], "ackworth: a: one run alone cannot be compared: name two or more"),
        (["compare", "a", "b"], "ackworth: a/results.json: No such file or directory: judge the run again"),
        (["rerun", "a"], "ackworth: a: no run of Ackworth's (there is no run.json in it)"),
    ],
)
def test_what_cannot_be_compared_or_run_again(here: Here, arguments: list[str], said: str) -> None:
    done = here(*arguments)
    [line] = done.err.splitlines()
    assert done.code == 2 and line.startswith(said)

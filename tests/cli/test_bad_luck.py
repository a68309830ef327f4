"""Ackworth itself is interrupted or killed: nothing is left behind, and the record so far can be judged."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ackworth.broker.process import descendants, states
from ackworth.cli.main import main
from ackworth.history.schema import SENT
from ackworth.history.spool import chunks, read_chunk
from ackworth.run import traces

pytestmark = pytest.mark.real

PATIENCE = 120.0  # seconds for whatever must come
BROKERS = ["brook-sqlite", "redis-streams"]
ENDLESS = ["--set", "workload.phases=[{name: send, duration: 10m, rate: 20000}]"]


class Running:
    """An `ackworth run reboot` that would take for ever."""

    def __init__(self, out: Path, *sets: str) -> None:
        self.out = out
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ackworth.cli.main", "run", "reboot", "--out", str(out), *ENDLESS, *sets],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def wait_for_words(self, words: str) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if words in line:
                return
        raise AssertionError(f"it ended without '{words}'")

    def has_sent(self) -> bool:
        spool = self.out / "trials" / "item-1" / "spool"
        return any(len(read_chunk(path, SENT)["seq"]) for _, _, path in chunks(spool, SENT))

    @property
    def run(self) -> str:
        return str(json.loads((self.out / "run.json").read_text())["run"])

    def end(self) -> tuple[int, str]:
        _, said = self.process.communicate(timeout=2 * PATIENCE)
        return self.process.returncode, said


def gone(run: str, out: Path) -> bool:
    """No process of the run, no mount and no loop device of it is left."""
    loops = subprocess.run(["losetup", "-a"], capture_output=True, text=True, check=True).stdout
    mounts = Path("/proc/self/mounts").read_text()
    return not traces._processes(run) and str(out) not in loops and str(out) not in mounts


def ackworth(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ackworth.cli.main", *arguments], capture_output=True, text=True, check=False
    )


@pytest.fixture(params=BROKERS)
def broker(request: pytest.FixtureRequest) -> list[str]:
    """The options that choose it."""
    if request.param == "redis-streams":
        request.getfixturevalue("redis_streams")
    return ["--broker", request.param]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_stops_in_good_order(tmp_path: Path, number: signal.Signals, broker: list[str]) -> None:
    running = Running(tmp_path / "run", *broker)
    running.wait_for(running.has_sent)
    run = running.run
    running.process.send_signal(number)
    code, said = running.end()
    assert code == 2
    assert f"interrupted; the record so far is in {running.out}: judge it with `ackworth check" in said
    assert gone(run, running.out)
    end = json.loads((running.out / "trials" / "item-1" / "end.json").read_text())
    assert "it was interrupted" in end["problems"]
    assert not (running.out / "trials" / "item-1" / "nodes").exists()


BRIEF = ["--set", "workload.phases=[{name: send, messages: 20_000}]", "--set", "faults=[]"]
MOMENTS = {
    "sending": ([], None),
    "cut": (["--set", "faults.0.at=500ms", "--set", "faults.0.down=1h"], "power-cut after"),
    "draining": ([*BRIEF, "--set", "workload.drain.quiet=1h"], "drain,"),
}


@pytest.mark.parametrize(
    ("broker", "moment"),
    [*(("brook-sqlite", moment) for moment in MOMENTS), ("redis-streams", "cut")],
    indirect=["broker"],
)
def test_killed_it_leaves_a_record_and_nothing_else(
    tmp_path: Path,
    moment: str,
    own_mounts: None,
    broker: list[str],
    inline: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    sets, words = MOMENTS[moment]
    running = Running(tmp_path / "run", *broker, *sets)
    running.wait_for(running.has_sent)
    if words:
        running.wait_for_words(words)
    run = running.run
    running.process.send_signal(signal.SIGKILL)
    running.process.communicate()
    wait_until_gone(lambda: gone(run, running.out))
    assert (running.out / "trials" / "item-1" / "nodes").exists()
    (said,) = traces.sweep()
    assert f"run {run} was killed" in said
    assert not (running.out / "trials" / "item-1" / "nodes").exists()
    assert traces.sweep() == []
    assert main(["check", str(running.out), "--json"]) == 2
    result = json.loads(capsys.readouterr().out)
    assert result["verdict"] == "unknown"
    assert result["trials"][0]["account"]["sent"] > 0
    complete = next(check for check in result["trials"][0]["checks"] if check["name"] == "complete")
    assert complete["verdict"] == "unknown" and "killed" in complete["reason"]


def wait_until_gone(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "something of a killed run lives on"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_ended_while_judging_it_takes_spark_along(
    tmp_path: Path, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    (temporary := tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    running = Running(tmp_path / "run", *BRIEF, "--only", "item-1")
    running.wait_for_words("judging: starting Spark")
    running.wait_for(lambda: any(is_java(pid) for pid in descendants(running.process.pid)))
    family = descendants(running.process.pid)
    running.process.send_signal(number)
    code, _ = running.end()
    assert code == (2 if number == signal.SIGINT else -number)
    wait_until_gone(lambda: not any(states(pid) - set("ZX") for pid in family))
    if number == signal.SIGKILL:
        assert list(temporary.iterdir()), "it cannot have cleaned up"
        assert ackworth("check", str(running.out)).returncode == 0
    assert list(temporary.iterdir()) == []


def is_java(pid: int) -> bool:
    try:
        return b"java" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
    except OSError:
        return False


def test_a_live_run_is_left_alone_and_not_judged(tmp_path: Path) -> None:
    running = Running(tmp_path / "run")
    try:
        running.wait_for(running.has_sent)
        assert traces.sweep() == []
        checked = ackworth("check", str(running.out))
        assert checked.returncode == 2 and "this run is still going on" in checked.stderr
        assert running.process.poll() is None
    finally:
        os.kill(running.process.pid, signal.SIGINT)
        running.end()


@pytest.mark.parametrize("broker", ["redis-streams"], indirect=True)
def test_two_runs_at_once_do_not_disturb_each_other(tmp_path: Path, broker: list[str]) -> None:
    brief = ["--only", "item-2", "--set", "workload.phases=[{name: send, duration: 2s, rate: 5000}]"]
    faults = ["--set", "faults=[{kind: kill, at: 1s, down: 100ms}]"]
    both = [Running(tmp_path / name, *broker, *brief, *faults) for name in ("one", "other")]
    for code, said in [running.end() for running in both]:
        assert code == 0, said

"""Things that happen at the same time, in the order that does the most harm."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ackworth.broker.disk import Disk
from ackworth.broker.redis_streams import RedisStreams
from ackworth.model.errors import BadInput, Unavailable
from ackworth.pipeline.trial import judge_trial
from ackworth.plan import resolve
from ackworth.plan.tree import parse
from ackworth.run import crew, directory
from ackworth.run.conductor import Conductor, Reporter
from ackworth.run.crew import Crew, Worker
from ackworth.run.stage import Stage
from ackworth.testing.engine import Inline
from tests.run.test_conductor import PLAN, Silent, Told, assert_nothing_lost, workers
from tests.run.test_server_broker import servers

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("no_process_left")]


@pytest.fixture
def conduct(tmp_path: Path) -> Callable[..., Told]:
    def run(*sets: str, reporter: Reporter | None = None) -> Told:
        (trial,) = resolve.trials(parse(PLAN, "tiny.yaml"), "small", sets)
        place = tmp_path / "trial"
        return Told(place, Conductor(trial, place, "00000000000000aa", 7, reporter or Silent()).run())

    return run


def verdict(told: Told) -> str:
    return judge_trial(str(told.directory), Inline())["verdict"]


# ---- somebody dies while a broker comes back ---------------------------------------------------------------


class Murderer(Silent):
    """Kills somebody else at the moment of a fault."""

    def __init__(self, victims: Callable[[], list[int]]) -> None:
        self._victims = victims

    def happened(self, what: str) -> None:
        os.kill(self._victims()[0], signal.SIGKILL)


def test_a_worker_that_dies_while_a_broker_comes_back_is_no_refusal_of_the_brokers(
    conduct: Callable[..., Told], redis_streams: RedisStreams
) -> None:
    told = conduct("broker.kind=redis-streams", "faults=[{kind: kill, at: 10%, down: 0s}]", reporter=Murderer(workers))
    assert "ended with signal SIGKILL" in told.end.problems[0]
    assert told.marks("refused") == [] and verdict(told) == "unknown"


def test_a_broker_that_ends_by_itself_as_a_consumer_is_killed_is_no_refusal_of_the_consumers(
    conduct: Callable[..., Told], redis_streams: RedisStreams
) -> None:
    fault = "faults=[{kind: kill, node: consumer, at: 10%, down: 0s}]"
    told = conduct("broker.kind=redis-streams", fault, reporter=Murderer(servers))
    assert "node redis ended with signal SIGKILL" in told.end.problems[0]
    assert told.marks("refused") == [] and verdict(told) == "unknown"


# ---- a consumer that does not ask any more ------------------------------------------------------------------


class Sleeper(Silent):
    """Has the consumer sleep as soon as it has said that there is nothing, until the drain has lasted for a while."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._asleep: list[Worker] = []
        self._look = Worker.look
        self.slept, self._drained = False, 0
        finish = Crew.finish

        def finish_awake(crew: Crew, role: str, *rest: Any) -> None:
            if role == "consume":
                self.wake()
            finish(crew, role, *rest)

        monkeypatch.setattr(Worker, "look", lambda worker: self.look(worker))
        monkeypatch.setattr(Crew, "finish", finish_awake)

    def look(self, worker: Worker) -> None:
        self._look(worker)
        if worker.idle and not self.slept:
            self.slept = True
            self._asleep.append(worker)
            os.kill(worker.process.pid, signal.SIGSTOP)

    def counts(self, phase: str, *, sent: int, answered: int, delivered: int) -> None:
        self._drained += phase == "drain"
        if self._drained == 2:  # for a second already
            self.wake()

    def wake(self) -> None:
        while self._asleep:
            os.kill(self._asleep.pop().process.pid, signal.SIGCONT)


def test_a_consumer_that_stands_still_is_not_one_that_finds_nothing(
    conduct: Callable[..., Told], monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeper = Sleeper(monkeypatch)
    told = conduct("workload.consumers=1", "workload.phases=[{name: send, messages: 2000}]", reporter=sleeper)
    assert sleeper.slept
    assert_nothing_lost(told, 2000)


def test_a_consumer_that_does_not_end_when_it_is_asked_to_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "_GRACE", 0.05)
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); signal.pause()"
    with subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "up\n"
        order: Any = None
        Worker("consumers-0", order, process, tmp_path / "log").stop()
        assert process.returncode == -signal.SIGKILL


# ---- interrupts ----------------------------------------------------------------------------------------------


def interrupt(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_interrupted_while_a_node_is_being_started_it_leaves_none(
    conduct: Callable[..., Told], redis_streams: RedisStreams, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """When the server runs, and nobody has its pid yet."""
    launch = subprocess.Popen.__init__

    def launched(process: Any, command: Any, *rest: Any, **options: Any) -> None:
        launch(process, command, *rest, **options)
        if "redis-server" in command[0] and "--version" not in command:
            interrupt()

    monkeypatch.setattr(subprocess.Popen, "__init__", launched)
    with pytest.raises(KeyboardInterrupt):
        conduct("broker.kind=redis-streams")
    assert servers() == [] and not (tmp_path / "trial" / "nodes").exists()


def test_interrupted_while_it_cleans_up_it_leaves_nothing(
    conduct: Callable[..., Told], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kill = Crew.kill

    def interrupted(crew: Crew) -> None:
        interrupt()
        kill(crew)

    monkeypatch.setattr(Crew, "kill", interrupted)
    with pytest.raises(KeyboardInterrupt):
        conduct("workload.phases.0.messages=1000")
    assert (tmp_path / "trial" / "end.json").exists()
    assert not (tmp_path / "trial" / "nodes").exists() and not (tmp_path / "trial" / "spool").exists()


class Interrupter(Silent):
    def counts(self, phase: str, *, sent: int, answered: int, delivered: int) -> None:
        interrupt()


def test_a_clean_up_that_fails_does_not_make_it_forget_that_it_was_interrupted(
    conduct: Callable[..., Told], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next trial of the run would begin."""
    end = Stage._end

    def failing(stage: Stage, node: Any) -> None:
        end(stage, node)
        raise Unavailable("it cannot be unmounted")

    monkeypatch.setattr(Stage, "_end", failing)
    with pytest.raises(KeyboardInterrupt):
        conduct(reporter=Interrupter())


def test_ctrl_c_does_not_reach_the_tools_that_clean_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "umount").write_text("#!/bin/sh\nps -o sid= $$ >> sessions; kill -9 $$\n")
    (tmp_path / "umount").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(os.path, "ismount", lambda path: True)
    disk = Disk.__new__(Disk)
    disk.mount_point = tmp_path
    with pytest.raises(Unavailable):
        disk.unmount(0)
    assert os.getsid(0) not in map(int, (tmp_path / "sessions").read_text().split())


# ---- two runs at the same time -------------------------------------------------------------------------------


def test_of_two_runs_that_want_one_directory_one_has_it(tmp_path: Path) -> None:
    directory.create(tmp_path / "run")
    with pytest.raises(BadInput, match="is not empty"):
        directory.create(tmp_path / "run")


def test_it_samples_the_disk_that_it_has_now(tmp_path: Path, own_mounts: None) -> None:
    from ackworth.run.samples import device_of

    disk, other = (Disk(tmp_path / f"{name}.img", tmp_path / name, 16 << 20) for name in ("disk", "other"))
    data = disk.mount_point / "data"
    data.mkdir()
    first = device_of(data)
    disk.unmount()
    assert device_of(data) is None
    other.unmount()
    other.mount()  # another run's may now be where ours was
    disk.mount()
    assert device_of(data) not in (None, device_of(other.mount_point))
    assert first is not None
    disk.remove()
    other.remove()

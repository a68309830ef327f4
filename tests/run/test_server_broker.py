"""Trials with a server: workers live through its death, and what it lost is seen and held against its claims."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ackworth.broker.process import descendants
from ackworth.broker.redis_streams import RedisStreams
from ackworth.broker.server import Server
from ackworth.model.outcome import Outcome
from ackworth.pipeline.trial import judge_trial
from ackworth.plan import resolve
from ackworth.plan.tree import parse
from ackworth.run.conductor import Conductor
from ackworth.testing.engine import Inline
from tests.run.test_conductor import FAULTS, MORE_THAN_IS_SENT, Silent, Told, assert_nothing_lost, is_ours

pytestmark = pytest.mark.real

PLAN = """
name: tiny
title: a tiny plan with a server
broker: {kind: redis-streams}
workload:
  topics: 16
  producers: 2
  consumers: 2
  window: 2000
  batch: 500
  drain: {quiet: 300ms}
  phases: [{name: send, messages: 60_000, rate: 40_000}]
"""

Conduct = Callable[..., Told]


@pytest.fixture
def conduct(tmp_path: Path, redis_streams: RedisStreams, no_process_left: None) -> Iterator[Conduct]:
    def run(*sets: str) -> Told:
        (trial,) = resolve.trials(parse(PLAN, "tiny.yaml"), "small", sets)
        directory = tmp_path / "trial"
        return Told(directory, Conductor(trial, directory, "00000000000000aa", 7, Silent()).run())

    yield run
    assert not (tmp_path / "trial" / "nodes").exists()
    assert str(tmp_path) not in subprocess.run(["losetup", "-a"], capture_output=True, text=True, check=True).stdout


def judged(told: Told) -> dict[str, Any]:
    result: dict[str, Any] = judge_trial(str(told.directory), Inline())
    return result


def second_command(monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    """What a server's second start runs instead of it."""
    commands: dict[Server, list[list[str]]] = {}
    start = Server.start

    def start_once(server: Server) -> None:
        server._command = commands.setdefault(server, [command, server._command]).pop()
        start(server)

    monkeypatch.setattr(Server, "start", start_once)


def lost(told: Told) -> int:
    return len(set(told.ids("outcome", outcome=Outcome.ACKED)) - set(told.ids("delivered")))


def cut(appendonly: str) -> list[str]:
    return [
        "faults=[{kind: power-cut, at: 40%, down: 50ms}]",
        "workload.consume=after",
        f"broker.settings.appendonly={appendonly}",
    ]


def test_a_plain_trial(conduct: Conduct) -> None:
    told = conduct()
    assert_nothing_lost(told, 60_000)
    assert set(told.ids("delivered").values()) == {1}
    assert {"node:redis", "worker:producers-0"} <= {row["who"] for row in told.rows("sample")}
    assert judged(told)["verdict"] == "held"


@pytest.mark.parametrize(("kind", "consume"), FAULTS)
def test_workers_live_through_what_the_server_does_not(conduct: Conduct, kind: str, consume: str) -> None:
    told = conduct(
        f"faults=[{{kind: {kind}, at: 10%, every: 500ms, times: 2, down: 100ms}}]", f"workload.consume={consume}"
    )
    assert_nothing_lost(told, 60_000)
    assert told.marks("fault") == [kind, kind]
    assert told.marks("worker-died") == []
    assert len(told.ids("outcome")) == 60_000  # everything has an outcome: a connection that broke is one
    assert bool(told.ids("outcome", outcome=Outcome.UNKNOWN)) <= (kind != "pause")
    assert judged(told)["verdict"] == "held"


def test_a_power_cut_at_always_loses_nothing(conduct: Conduct, own_mounts: None) -> None:
    told = conduct(*cut("always"))
    assert_nothing_lost(told, 60_000)
    assert told.marks("fault") == told.marks("ready") == ["power-cut"]
    assert judged(told)["verdict"] == "held"


def test_a_power_cut_with_the_file_off_loses_what_it_never_claimed_to_keep(conduct: Conduct, own_mounts: None) -> None:
    told = conduct(*cut("off"))
    assert lost(told) > 10_000  # all that came before the cut
    assert judged(told)["verdict"] == "held"


def test_a_plan_may_expect_more_than_is_claimed(conduct: Conduct, own_mounts: None) -> None:
    told = conduct(*cut("off"), "expect.lost=none")
    result = judged(told)
    assert result["verdict"] == "broken" and result["account"]["acked"] > lost(told) > 0


def test_a_power_cut_every_second_loses_what_was_not_synced(conduct: Conduct, own_mounts: None) -> None:
    told = conduct(*cut("everysec"))
    assert told.end.problems == ()
    assert 0 < lost(told) < 60_000
    assert judged(told)["verdict"] == "held"


def test_a_server_killed_with_the_file_off_has_lost_everything_and_the_groups(conduct: Conduct) -> None:
    told = conduct(
        "faults=[{kind: kill, at: 30%, down: 50ms}]", "broker.settings.appendonly=off", "workload.consume=after"
    )
    assert told.end.problems == () and told.end.drained
    assert lost(told) > 10_000
    assert told.ids("delivered")  # what came after it


def test_a_fault_that_ends_the_load(conduct: Conduct) -> None:
    told = conduct("faults=[{kind: kill, at: 20_000 messages, resume: false}]", MORE_THAN_IS_SENT)
    assert told.end.problems == () and told.end.drained
    assert 20_000 <= len(told.ids("sent")) < 10_000_000
    assert lost(told) == 0


class Sandman(Silent):
    """Puts the server to sleep as the drain begins, for longer than the drain waits for news."""

    def __init__(self) -> None:
        self._asleep: list[int] = []
        self.woken = False

    def counts(self, phase: str, *, sent: int, answered: int, delivered: int) -> None:
        if self._asleep:
            os.kill(self._asleep.pop(), signal.SIGCONT)
            self.woken = True
        elif phase == "drain" and not self.woken:
            self._asleep = servers()
            os.kill(self._asleep[0], signal.SIGSTOP)


def test_a_server_that_stalls_in_the_drain_is_not_taken_for_empty(tmp_path: Path, redis_streams: RedisStreams) -> None:
    (trial,) = resolve.trials(parse(PLAN, "tiny.yaml"), "small", ["workload.consume=after"])
    sandman = Sandman()
    end = Conductor(trial, tmp_path / "trial", "00000000000000aa", 7, sandman).run()
    assert sandman.woken
    assert_nothing_lost(Told(tmp_path / "trial", end), 60_000)


def servers() -> list[int]:
    return [pid for pid in descendants(os.getpid()) if is_ours(pid, b"redis-server")]


class Vandal(Silent):
    """Ends the server behind the conductor's back, as soon as something was sent."""

    def counts(self, phase: str, *, sent: int, answered: int, delivered: int) -> None:
        if sent and (found := servers()):
            os.kill(found[0], signal.SIGKILL)


def test_a_server_that_ends_by_itself_is_a_problem(
    tmp_path: Path, redis_streams: RedisStreams, no_process_left: None
) -> None:
    (trial,) = resolve.trials(parse(PLAN, "tiny.yaml"), "small", ["workload.phases.0.duration=60s"])
    end = Conductor(trial, tmp_path / "trial", "00000000000000aa", 7, Vandal()).run()
    assert "node redis ended with signal SIGKILL; its last lines: " in end.problems[0]
    assert "Ready to accept connections" in end.problems[0]


def test_a_server_that_refuses_to_start_after_a_cut_says_why(
    conduct: Conduct, own_mounts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that comes back damaged, as it may where a server syncs too little."""
    from ackworth.broker.disk import Disk

    mount = Disk.mount

    def mount_damaged(disk: Disk) -> None:
        mount(disk)
        for file in disk.mount_point.glob("data/appendonlydir/*.incr.aof"):
            file.write_bytes(b"no command\r\n" * 100)

    monkeypatch.setattr(Disk, "mount", mount_damaged)
    told = conduct(*cut("always"))
    assert told.marks("refused") == told.marks("repaired") == ["power-cut"]
    result = judged(told)
    [fault] = result["faults"]
    assert "node redis ended with code 1; its last lines: " in fault["refused"]
    assert "Bad file format reading the append only file" in fault["refused"]
    assert fault["repaired"].startswith("redis-check-aof --fix: ")
    # It claims to survive, and neither started nor, when it was repaired, had what it had acked.
    verdicts = {check["name"]: check["verdict"] for check in result["checks"]}
    assert (verdicts["started"], verdicts["lost"], result["verdict"]) == ("broken", "broken", "broken")
    assert lost(told) > 10_000 and told.end.drained


def test_without_a_tool_a_refusal_to_start_ends_the_trial(conduct: Conduct, monkeypatch: pytest.MonkeyPatch) -> None:
    second_command(monkeypatch, ["/bin/false"])
    told = conduct("faults=[{kind: kill, at: 50%, down: 50ms}]", "broker.settings.appendonly=off")
    assert "node redis ended with code 1" in told.end.problems[0]
    result = judged(told)
    assert result["faults"][0]["refused"] and result["faults"][0]["repaired"] is None
    assert result["verdict"] == "unknown"  # a kill is not among what it claims to survive with the file off


def test_one_that_runs_and_does_not_answer_in_time_has_not_refused_to_start(
    conduct: Conduct, monkeypatch: pytest.MonkeyPatch
) -> None:
    second_command(monkeypatch, ["/bin/sleep", "60"])
    monkeypatch.setattr("ackworth.run.conductor.RECOVERED_WITHIN", 1.0)
    told = conduct("faults=[{kind: kill, at: 50%, down: 50ms}]", "broker.settings.appendonly=always")
    assert told.end.problems[0].startswith("the broker was not ready within 1 s")
    assert told.marks("refused") == []
    assert judged(told)["verdict"] == "unknown"

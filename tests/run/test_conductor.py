"""A trial leaves a whole record, whatever is broken on the way, and leaves nothing else."""

import contextlib
import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ackworth.broker.process import descendants
from ackworth.history.meta import End
from ackworth.history.schema import TABLES
from ackworth.history.settle import settle
from ackworth.model.outcome import Outcome
from ackworth.plan import resolve
from ackworth.plan.tree import parse
from ackworth.run import space
from ackworth.run.conductor import Conductor, Reporter

pytestmark = pytest.mark.real

PLAN = """
name: tiny
title: a tiny plan
workload:
  topics: 16
  producers: 2
  consumers: 2
  window: 500
  batch: 500
  drain: {quiet: 300ms}
  phases: [{name: send, messages: 60_000}]
"""

FOR_A_MINUTE = "workload.phases=[{name: send, duration: 60s, rate: 1000}]"
MORE_THAN_IS_SENT = "workload.phases=[{name: send, messages: 10_000_000, rate: 40_000}]"  # a fault ends it
# A fault that finds consumers at work finds producers too; a kill that finds producers alone is a case of its own.
FAULTS = [("kill", "during"), ("sigterm", "during"), ("pause", "during"), ("kill", "after")]


class Silent:
    """Is told, and does not tell."""

    def counts(self, phase: str, *, sent: int, answered: int, delivered: int) -> None: ...
    def happened(self, what: str) -> None: ...
    def working(self, what: str) -> None: ...


class Told:
    """A trial that was conducted, with its record read by plain means."""

    def __init__(self, directory: Path, end: End) -> None:
        self.directory, self.end = directory, end

    def rows(self, table: str) -> list[dict[str, Any]]:
        return [row for columns in self._columns(table) for row in columns.to_pylist()]

    def ids(self, table: str, **only: int) -> Counter[tuple[int, int]]:
        found: Counter[tuple[int, int]] = Counter()
        for columns in self._columns(table, "producer", "seq", *only):
            producers, seqs, *values = (columns[name].to_pylist() for name in ("producer", "seq", *only))
            wanted = tuple(only.values())
            found.update((p, s) for p, s, *row in zip(producers, seqs, *values, strict=True) if tuple(row) == wanted)
        return found

    def _columns(self, table: str, *names: str) -> list[pa.Table]:
        files = sorted((self.directory / "record" / table).glob("*.parquet"))
        return [pq.read_table(file, columns=list(names) or None) for file in files]

    def marks(self, what: str) -> list[str]:
        return [row["name"] for row in self.rows("mark") if row["what"] == what]


def is_ours(pid: int, module: bytes = b"ackworth.") -> bool:
    try:
        return module in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def workers() -> list[int]:
    return [pid for pid in descendants(os.getpid()) if is_ours(pid, b"ackworth.load.worker")]


@pytest.fixture
def conduct(tmp_path: Path) -> Iterator[Callable[..., Told]]:
    def run(*sets: str, reporter: Reporter | None = None) -> Told:
        (trial,) = resolve.trials(parse(PLAN, "tiny.yaml"), "small", sets)
        directory = tmp_path / "trial"
        return Told(directory, Conductor(trial, directory, "00000000000000aa", 7, reporter or Silent()).run())

    yield run
    assert not (tmp_path / "trial" / "nodes").exists()
    assert [pid for pid in descendants(os.getpid()) if is_ours(pid)] == []
    assert str(tmp_path) not in subprocess.run(["losetup", "-a"], capture_output=True, text=True, check=True).stdout


def assert_nothing_lost(told: Told, sent: int) -> None:
    assert told.end.problems == () and told.end.drained
    everything, acked, delivered = told.ids("sent"), told.ids("outcome", outcome=Outcome.ACKED), told.ids("delivered")
    assert set(everything) == {(p, s) for p in range(2) for s in range(sent // 2)}
    assert max(everything.values()) == max(told.ids("outcome").values()) == 1
    assert set(acked) <= set(delivered) <= set(everything)


def test_a_plain_trial(conduct: Callable[..., Told]) -> None:
    told = conduct()
    assert_nothing_lost(told, 60_000)
    assert set(told.ids("delivered").values()) == {1}
    assert told.marks("phase") == ["send", "drain"]
    assert {"host"} <= {row["who"] for row in told.rows("sample")}
    assert not list((told.directory / "spool").rglob("*.chunk"))
    assert {path.name for path in (told.directory / "record").iterdir()} == set(TABLES)
    trial = json.loads((told.directory / "trial.json").read_text())
    assert (
        trial["broker"]["settings"] == {"durability": "full", "retries": "ladder"}
        and trial["plan"]["workload"]["topics"] == 16
    )


@pytest.mark.parametrize(("kind", "consume"), FAULTS)
def test_faults_lose_nothing(conduct: Callable[..., Told], kind: str, consume: str) -> None:
    fault = f"faults=[{{kind: {kind}, at: 10%, every: 300ms, times: 2, down: 50ms}}]"
    told = conduct(fault, f"workload.consume={consume}", "workload.phases.0.rate=40000")
    assert_nothing_lost(told, 60_000)
    assert told.marks("fault") == [kind, kind]
    assert bool(told.marks("worker-died")) == (kind != "pause")


def test_a_power_cut_with_full_durability(conduct: Callable[..., Told], own_mounts: None) -> None:
    told = conduct("faults=[{kind: power-cut, at: 50%, down: 50ms}]", "workload.consume=after")
    assert_nothing_lost(told, 60_000)
    assert told.marks("fault") == told.marks("ready") == ["power-cut"]


def test_a_power_cut_without_syncing_loses(conduct: Callable[..., Told], own_mounts: None) -> None:
    told = conduct(
        "faults=[{kind: power-cut, at: 50%, down: 50ms}]",
        "workload.consume=after",
        "broker.settings.durability=off",
    )
    lost = set(told.ids("outcome", outcome=Outcome.ACKED)) - set(told.ids("delivered"))
    assert lost or told.end.problems  # what SQLite makes of half a database is its own affair


def test_a_fault_that_ends_the_load(conduct: Callable[..., Told]) -> None:
    told = conduct("faults=[{kind: kill, at: 20_000 messages, resume: false}]", MORE_THAN_IS_SENT)
    assert told.end.problems == () and told.end.drained
    assert 20_000 <= len(told.ids("sent")) < 10_000_000


def test_phases_follow_each_other(conduct: Callable[..., Told]) -> None:
    told = conduct("workload.phases=[{name: warm, messages: 1000}, {name: timed, duration: 1s, rate: 5000}]")
    assert told.marks("phase") == ["warm", "timed", "drain"]
    (timed,) = [row for row in told.rows("mark") if row["name"] == "timed"]
    sent = told.rows("sent")
    warm = [row for row in sent if row["seq"] < 500]
    due = [row["t"] - row["late"] for row in sent if row["seq"] >= 500]
    assert len(warm) == 1000 and {row["late"] for row in warm} == {0}
    assert timed["t_end"] - timed["t_begin"] >= 1e9
    # How many get sent in a second depends on the machine; when each was due does not.
    assert 0 < len(due) <= 5000 * (timed["t_end"] - timed["t_begin"]) / 1e9 + 2
    assert timed["t_begin"] <= min(due) and max(due) <= timed["t_end"]


def test_two_groups_get_everything_each(conduct: Callable[..., Told]) -> None:
    told = conduct("workload.groups=2", "workload.phases.0.messages=10_000")
    for group in range(2):
        assert set(told.ids("delivered", group=group).values()) == {1}
        assert len(told.ids("delivered", group=group)) == 10_000


def test_a_fault_that_cannot_be_had_is_a_problem(conduct: Callable[..., Told], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    told = conduct("faults=[{kind: power-cut, at: 50%}]")
    assert "the fault 'power-cut' cannot be had here: it needs root" in told.end.problems[0]
    assert told.rows("sent") == []


def test_a_node_that_does_not_take_part_is_a_problem(
    conduct: Callable[..., Told], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ackworth.run.conductor.READY_WITHIN", 3.0)
    monkeypatch.setattr("ackworth.run.stage.Stage.joined", lambda self: False)
    told = conduct()
    assert told.end.problems == ("not every node takes part 3 s after its start: see its log",)
    assert told.rows("sent") == []


def test_a_fault_that_was_never_due_is_a_problem(conduct: Callable[..., Told]) -> None:
    told = conduct("faults=[{kind: kill, at: 1h}]", "workload.phases.0.messages=1000")
    assert told.end.problems == ("the fault 'kill' did not strike as often as planned",)


def test_a_failure_of_our_own_is_on_record(conduct: Callable[..., Told], tmp_path: Path) -> None:
    class Defective(Silent):
        def happened(self, what: str) -> None:
            raise LookupError

    with pytest.raises(LookupError):
        conduct("faults=[{kind: kill, at: 10%}]", reporter=Defective())
    assert json.loads((tmp_path / "trial" / "end.json").read_text())["problems"] == [
        "Ackworth itself failed (LookupError)"
    ]


def test_a_drain_without_patience_reads_until_there_is_nothing(conduct: Callable[..., Told]) -> None:
    told = conduct("workload.consume=after", "workload.drain.quiet=0s")
    assert_nothing_lost(told, 60_000)


def test_a_drain_that_takes_too_long_is_not_drained(conduct: Callable[..., Told]) -> None:
    told = conduct("workload.drain={quiet: 1h, limit: 300ms}", "workload.phases.0.messages=1000")
    assert not told.end.drained and "was given up" in told.end.notes[0]


class Killer(Silent):
    """Kills a worker as soon as something was sent."""

    def counts(self, phase: str, *, sent: int, answered: int, delivered: int) -> None:
        if sent:
            os.kill(workers()[0], signal.SIGKILL)


def test_a_worker_that_dies_by_itself_is_a_problem(conduct: Callable[..., Told]) -> None:
    told = conduct(FOR_A_MINUTE, reporter=Killer())
    assert "ended with signal SIGKILL" in told.end.problems[0]


def test_a_disk_that_fills_up_stops_the_trial_in_good_order(
    conduct: Callable[..., Told], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(space, "RESERVE", 1 << 60)
    told = conduct(FOR_A_MINUTE)
    assert "is full" in told.end.problems[0]
    assert set(told.ids("outcome")) <= set(told.ids("sent"))


class Spoiler(Silent):
    """Overwrites the database as soon as the drain has begun."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def counts(self, phase: str, *, sent: int, answered: int, delivered: int) -> None:
        for file in self._directory.glob("nodes/*/data/brook.db*") if phase == "drain" else ():
            with file.open("r+b") as open_file:  # not truncated: part of it is mapped, and its readers would get SIGBUS
                open_file.write(b"not a database any more" * 1000)


def test_consumers_that_cannot_read_are_no_loss(
    conduct: Callable[..., Told], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ackworth.run.conductor.READY_WITHIN", 1.0)
    told = conduct("workload.consume=after", "workload.drain.quiet=3s", reporter=Spoiler(tmp_path / "trial"))
    assert not told.end.drained
    assert "the consumers could not read" in told.end.problems[0]


def test_producers_that_cannot_send_do_not_try_for_ever(
    conduct: Callable[..., Told], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ackworth.run.conductor.READY_WITHIN", 0.5)
    monkeypatch.setattr("ackworth.run.crew.Worker.trouble", "nobody answers")
    told = conduct(FOR_A_MINUTE)
    assert not told.end.drained
    assert told.end.problems == ("the producers could not send for 0.5 s: nobody answers",)


class Freezer(Silent):
    """Stops a worker as soon as something was sent."""

    def counts(self, phase: str, *, sent: int, answered: int, delivered: int) -> None:
        if sent:
            os.kill(workers()[0], signal.SIGSTOP)


def test_a_worker_that_stands_still_is_noticed(conduct: Callable[..., Told], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ackworth.run.crew.SILENT_FOR", 2.0)
    monkeypatch.setattr("ackworth.run.conductor.READY_WITHIN", 1.0)
    told = conduct(FOR_A_MINUTE, "workload.consume=after", reporter=Freezer())
    assert not told.end.drained
    (problem,) = told.end.problems
    assert problem.startswith("the producers could not send for 1 s: producers-")
    assert problem.endswith(" has said nothing for 2 s")


class Filler(Silent):
    """Fills the disk to its last byte as soon as something was sent."""

    def __init__(self, disk: Path) -> None:
        self._disk = disk

    def counts(self, phase: str, *, sent: int, answered: int, delivered: int) -> None:
        if sent:
            with contextlib.suppress(OSError), (self._disk / "filler").open("ab") as file:
                while True:
                    file.write(bytes(1 << 20))


def test_a_disk_filled_to_the_last_byte_loses_no_event(tmp_path: Path, own_mounts: None) -> None:
    disk = tmp_path / "small"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400m", "none", str(disk)], check=True)
    try:
        (trial,) = resolve.trials(parse(PLAN, "tiny.yaml"), "small", ["workload.phases=[{name: s, duration: 20s}]"])
        end = Conductor(trial, disk / "trial", "00000000000000aa", 7, Filler(disk)).run()
        assert end.problems, "it did not notice"
        (disk / "filler").unlink()
        settle(disk / "trial")
        told = Told(disk / "trial", end)
        assert told.ids("sent") and set(told.ids("outcome")) <= set(told.ids("sent"))
        assert max(told.ids("sent").values()) == 1
    finally:
        subprocess.run(["umount", str(disk)], check=True)

"""While there is nothing to do, a worker sleeps; it wakes as soon as there is; and it ends in good order."""

import fcntl
import json
import os
import resource
import subprocess
import sys
from dataclasses import dataclass

import pytest

from ackworth.load import worker
from ackworth.load.producer import NEVER
from ackworth.model.clock import SECOND
from ackworth.testing.clock import FakeClock


class Quiet:
    """A connection through which nothing comes until somebody writes."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def fileno(self) -> int:
        return self._read

    def news(self) -> None:
        os.write(self._write, b"x")

    def close(self) -> None:
        os.close(self._read)
        os.close(self._write)


@dataclass
class Load:
    connection: object | None
    at: int = NEVER

    def next_at(self) -> int:
        return self.at


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long it was willing to wait for a descriptor."""
    found: list[float] = []
    real = worker.select.select

    def select(descriptors: list[int], *rest: object) -> object:
        found.append(float(str(rest[-1])))
        return real(descriptors, [], [], 0)

    monkeypatch.setattr(worker.select, "select", select)
    return found


def wait(clock: FakeClock, *loads: Load) -> None:
    worker.wait(clock, loads, SECOND // 1000)  # type: ignore[arg-type]


def test_with_a_full_window_only_news_wake_it(slept: list[float]) -> None:
    quiet = Quiet()
    wait(FakeClock(), Load(quiet))
    assert slept == [worker.LONGEST_WAIT / SECOND]
    quiet.close()


def test_it_wakes_when_something_is_due(slept: list[float]) -> None:
    quiet = Quiet()
    clock = FakeClock()
    wait(clock, Load(quiet), Load(None, at=clock.now() + 3_000_000))
    assert slept == [pytest.approx(0.003, abs=1e-5)]
    quiet.close()


def test_news_wake_it_at_once() -> None:
    quiet = Quiet()
    quiet.news()
    wait(FakeClock(), Load(quiet))  # a fake clock does not move, so a sleep would not end
    quiet.close()


def test_news_wake_it_also_if_it_has_more_connections_than_select_can_count() -> None:
    few, many = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(few, 1100), many))
    quiet, beyond = Quiet(), Quiet()
    descriptor = fcntl.fcntl(beyond.fileno(), fcntl.F_DUPFD, 1024)
    beyond.news()
    with os.fdopen(descriptor) as connection:
        wait(FakeClock(), Load(quiet), Load(connection))
    quiet.close()
    beyond.close()


def test_one_that_cannot_be_waited_for_is_looked_at_often(slept: list[float]) -> None:
    clock = FakeClock()
    before = clock.now()
    wait(clock, Load(object()))
    assert slept == [] and clock.now() == pytest.approx(before + SECOND // 1000, abs=10_000)


def test_one_that_waits_to_connect_again_sleeps_until_then(slept: list[float]) -> None:
    clock = FakeClock()
    before = clock.now()
    wait(clock, Load(None, at=before + SECOND // 100))
    assert slept == [] and clock.now() == pytest.approx(before + SECOND // 100, abs=10_000)


ENDING_SLOWLY = """
import sys
from ackworth.load import worker

class Slow:
    def __del__(self, read=sys.stdin.read):  # the interpreter is about to end
        print("ending", flush=True)
        read()

slow = Slow()
sys.exit(worker.main())
"""


def test_one_that_is_ending_already_may_be_asked_to_end_again() -> None:
    rest = {"address": {}, "topics": [], "groups": [], "run": "a", "seed": 1}
    order = {"role": "produce", "parent": os.getpid(), "driver": "brook", **rest}
    with subprocess.Popen(
        [sys.executable, "-c", ENDING_SLOWLY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(order) + "\n0\n")
        process.stdin.flush()
        assert [process.stdout.readline(), process.stdout.readline()] == ["up\n", "ending\n"]
        process.terminate()
    assert process.returncode == 0

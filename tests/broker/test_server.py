"""A server process of ours: has its ports for itself, dies with the run, and is ended with all that it started."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ackworth.broker import ports as ports_module
from ackworth.broker.ports import HOST, Ports
from ackworth.broker.process import states, wait_until
from ackworth.broker.server import Server
from ackworth.fault.kill import FAULT as KILL
from ackworth.model.errors import BrokerFailed, Unavailable

pytestmark = pytest.mark.real


def gone(pid: int) -> bool:
    return states(pid) <= set("ZX")


# ---- ports ---------------------------------------------------------------------------------------------------


def test_two_runs_never_have_the_same_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports_module, "LAST", ports_module.FIRST + 40)
    with Ports() as one, Ports() as other:
        found = [ports.reserve() for ports in (one, other) * 8]
        assert len(set(found)) == 16


def test_a_port_that_somebody_listens_on_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with Ports() as ports:
        port = ports.reserve()
    monkeypatch.setattr(ports_module, "FIRST", port)
    monkeypatch.setattr(ports_module, "LAST", port + 1)
    with socket.create_server((HOST, port)), Ports() as ports, pytest.raises(Unavailable, match="no free port"):
        ports.reserve()
    with Ports() as ports:
        assert ports.reserve() == port


# ---- the process ---------------------------------------------------------------------------------------------

# Says its pid and that of a child, and stays; at SIGTERM it says goodbye.
FAMILY = """
import os, signal, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
def end(*_):
    child.kill()
    print("goodbye", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("ready", os.getpid(), child.pid, flush=True)
signal.pause()
"""


class Family:
    def __init__(self, folder: Path, program: str = FAMILY) -> None:
        self.log = folder / "family.log"
        self.node = Server("family", [sys.executable, "-c", program], self.log)

    def pids(self) -> list[int]:
        wait_until(lambda: bool(self._said()), 60, "the family is there")
        return [int(pid) for pid in self._said()[-1]]

    def _said(self) -> list[tuple[str, str]]:
        return re.findall(r"^ready (\d+) (\d+)$", self.log.read_text(), re.MULTILINE)


@pytest.fixture
def family(tmp_path: Path) -> Iterator[Family]:
    one = Family(tmp_path)
    one.node.start()
    yield one
    one.node.stop()
    assert one.node.processes() == []


def test_its_processes_are_all_of_the_family(family: Family) -> None:
    assert sorted(family.pids()) == family.node.processes()
    family.node.look()


def test_a_child_whose_parent_is_gone_still_belongs_to_it(family: Family) -> None:
    parent, child = family.pids()
    os.kill(parent, signal.SIGKILL)
    wait_until(lambda: gone(parent), 60, "the parent is gone")
    assert family.node.processes() == [child]
    KILL.strike(family.node, None)
    assert gone(child) and family.node.processes() == []


def test_the_pid_of_a_dead_one_is_nobody_elses_as_long_as_it_is_asked_for(family: Family) -> None:
    main, child = family.pids()
    for pid in (child, main):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: gone(main), 60, "it is gone")
    with pytest.raises(BrokerFailed, match="ended with signal SIGKILL"):
        family.node.look()
    assert family.node.processes() == []
    assert states(main) == {"Z"}, "it was buried, and a new process may have its pid"
    family.node.stop()
    assert states(main) == set()


def test_it_stops_in_good_order_and_can_start_again(family: Family) -> None:
    first = family.pids()
    family.node.stop()
    assert family.log.read_text().endswith("goodbye\n") and all(map(gone, first))
    family.node.start()
    wait_until(lambda: family.pids() != first, 60, "it runs again")
    family.node.look()


def test_one_that_does_not_stop_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stubborn = Family(tmp_path, FAMILY.replace("SIGTERM, end", "SIGTERM, signal.SIG_IGN"))
    stubborn.node.start()
    pids = stubborn.pids()
    monkeypatch.setattr("ackworth.broker.server.STOP_WITHIN", 0.05)
    stubborn.node.stop()
    assert all(map(gone, pids))


def test_one_that_ends_by_itself_is_a_failure_with_its_last_lines(tmp_path: Path) -> None:
    node = Server(
        "broken",
        [sys.executable, "-c", "print('one'); print('  at that'); print('two'); raise SystemExit(3)"],
        tmp_path / "log",
    )
    (tmp_path / "log").write_text("from an earlier start\n")
    node.start()

    def failed() -> bool:
        try:
            node.look()
        except BrokerFailed as error:
            assert str(error) == "node broken ended with code 3; its last lines: one | two"
            return True
        return False

    wait_until(failed, 60, "it has ended")
    node.stop()


def test_a_program_that_is_not_there_cannot_be_started(tmp_path: Path) -> None:
    node = Server("nobody", ["/no/such/program"], tmp_path / "log")
    with pytest.raises(Unavailable, match="/no/such/program cannot be started: No such file"):
        node.start()
    node.stop()
    assert node.processes() == []


STARTER = """
import sys
from pathlib import Path
from tests.broker.test_server import Family
family = Family(Path(sys.argv[1]))
family.node.start()
print(*family.pids(), flush=True)
sys.stdin.read()
"""


def test_it_dies_with_whoever_started_it(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as starter:
        assert starter.stdout is not None
        pid, child = map(int, starter.stdout.readline().split())
        assert not gone(pid)
        starter.kill()
    wait_until(lambda: gone(pid), 60, "the server is gone")
    os.kill(child, signal.SIGKILL)  # which a real server ends, or is ended by a fault

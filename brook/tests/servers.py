"""Real servers for the tests: installed from Debian where that is allowed, started on free ports, gone with the tests.

A server is a child that the kernel kills when the test process ends, however that ends.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

_PR_SET_PDEATHSIG = 1
_START_WITHIN = 60.0
HOST = "127.0.0.1"

# While packages are configured, `policy-rc.d` keeps the services that come with them from starting (101: not allowed).
_INSTALL = """
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
    trap 'rm -f $policy' EXIT
    printf '#!/bin/sh\\nexit 101\\n' > $policy && chmod 755 $policy
fi
export DEBIAN_FRONTEND=noninteractive
install() { apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=120 "$@"; }
install "$@" || { apt-get update -q && install "$@"; }
"""


def require(program: str, *packages: str) -> str:
    """Where the program is; installed if it has to be and may be, and otherwise the test is skipped."""
    if found := _find(program):
        return found
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip(f"{program} is not installed: as root, apt-get install {' '.join(packages)}")
    done = subprocess.run(["sh", "-c", _INSTALL, "sh", *packages], capture_output=True, text=True, check=False)
    if found := _find(program):
        return found
    raise RuntimeError(f"apt-get install {' '.join(packages)} brought no {program}: {done.stdout}{done.stderr}")


def _find(program: str) -> str | None:
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin:/sbin")


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((HOST, 0))
        return [probe.getsockname()[1] for probe in probes]


class Server:
    def __init__(self, command: Sequence[str | Path], log: Path, is_ready: Callable[[], bool]) -> None:
        self._command = [str(part) for part in command]
        self._log = log
        self._is_ready = is_ready
        self._process: subprocess.Popen[bytes] | None = None

    def launch(self, *more: str) -> None:
        libc, parent = ctypes.CDLL(None), os.getpid()

        def die_with_parent() -> None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command, *more], stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_parent
            )

    def await_ready(self) -> None:
        wait_until(self._answers, f"{self._command[0]}, see {self._log}")

    def start(self) -> None:
        self.launch()
        self.await_ready()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _answers(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise RuntimeError(f"{self._command[0]} ended: {self._log.read_text(errors='replace')[-2000:]}")
        return self._is_ready()


def wait_until(holds: Callable[[], bool], what: str, seconds: float = _START_WITHIN) -> None:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds:g} s for {what}")
        threading_nap()


def threading_nap() -> None:
    time.sleep(0.01)


class MariaDb:
    """One mariadbd; each test gets a database of its own."""

    def __init__(self, directory: Path, port: int, *options: str) -> None:
        self.port = port
        self._directory = directory
        self._made = 0
        program = require("mariadbd", "mariadb-server")
        self._user = [f"--user={'root' if os.geteuid() == 0 else os.environ.get('USER', 'nobody')}"]
        command = [
            program, "--no-defaults", *self._user, f"--datadir={directory}/data", f"--bind-address={HOST}",
            f"--port={port}", f"--socket={directory}/s", f"--pid-file={directory}/pid", f"--tmpdir={directory}",
            # Nobody cuts the power here, and the tests need not wait for the disk.
            "--innodb-flush-method=nosync", "--innodb-buffer-pool-size=64M", "--max-connections=400",
            "--skip-name-resolve", "--skip-log-bin", *options,
        ]  # fmt: skip
        self.server = Server(command, directory / "log", self._is_ready)

    def initialise(self) -> None:
        program = require("mariadb-install-db", "mariadb-server")
        command = [
            program, "--no-defaults", *self._user, f"--datadir={self._directory}/data", "--skip-test-db",
            "--auth-root-authentication-method=normal", "--innodb-flush-method=nosync",
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True)

    def connect(self, database: str | None = None, **options: Any) -> Any:
        import pymysql

        return pymysql.connect(host=HOST, port=self.port, user="root", database=database, **options)

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        with contextlib.closing(self.connect(autocommit=True)) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def new_database(self) -> str:
        self._made += 1
        self.ask(f"CREATE DATABASE q{self._made}")
        return f"q{self._made}"

    def url(self, database: str) -> str:
        return f"mysql://root@{HOST}:{self.port}/{database}"

    def _is_ready(self) -> bool:
        import pymysql

        with contextlib.suppress(pymysql.Error):
            self.ask("SELECT 1")
            return True
        return False


@contextlib.contextmanager
def mariadb(directory: Path) -> Iterator[MariaDb]:
    database = MariaDb(directory, free_ports(1)[0])
    database.initialise()
    try:
        database.server.start()
        yield database
    finally:
        database.server.kill()

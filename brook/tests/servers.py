"""Real servers for the tests: installed from Debian where that is allowed, started on free ports, gone with the tests.

A server is a child that the kernel kills when the test process ends, however that ends.
"""

import contextlib
import ctypes
import itertools
import os
import random
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
_START_WITHIN = 120.0
HOST = "127.0.0.1"
# Below those that the kernel hands out: nobody's outgoing connection takes the port of a server that is down.
_PORTS = range(30_000, 32_768)

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
    """Where the program is; installed if it has to be and may be. Else the test is skipped; with CI=true it fails."""
    if found := _find(program):
        return found
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        missing = f"{program} is not installed: as root, apt-get install {' '.join(packages)}"
        pytest.fail(missing) if os.environ.get("CI") == "true" else pytest.skip(missing)
    done = subprocess.run(["sh", "-c", _INSTALL, "sh", *packages], capture_output=True, text=True, check=False)
    if found := _find(program):
        return found
    raise RuntimeError(f"apt-get install {' '.join(packages)} brought no {program}: {done.stdout}{done.stderr}")


def _find(program: str) -> str | None:
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin:/sbin")


def free_ports(count: int) -> list[int]:
    free = filter(_is_free, random.sample(_PORTS, len(_PORTS)))
    return list(itertools.islice(free, count))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            probe.bind((HOST, port))
            return True
    return False


class Server:
    def __init__(
        self, command: Sequence[str | Path], log: Path, is_ready: Callable[[], bool], user: str | None = None
    ) -> None:
        """user: to run as, if we are root."""
        self._command = [str(part) for part in command]
        self._user = user if os.geteuid() == 0 else None
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
            # Who changes its user on its own, the kernel does not kill with its parent any more.
            self._process = subprocess.Popen(
                [*self._command, *more],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self._user,
                group=self._user,
                extra_groups=[] if self._user else None,
                preexec_fn=die_with_parent,
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
        time.sleep(0.01)


class MariaDb:
    """One mariadbd; each test gets a database of its own."""

    def __init__(self, directory: Path, port: int, *options: str, user: str = "root") -> None:
        """user: to run as, if we are root."""
        self.port = port
        self._directory = directory
        self._made = 0
        program = require("mariadbd", "mariadb-server")
        self._user = ["--user=root"] if (os.geteuid(), user) == (0, "root") else []
        command = [
            program, "--no-defaults", *self._user, f"--datadir={directory}/data", f"--bind-address={HOST}",
            f"--port={port}", f"--socket={directory}/s", f"--pid-file={directory}/pid", f"--tmpdir={directory}",
            # Nobody cuts the power here, and the tests need not wait for the disk.
            "--innodb-flush-method=nosync", "--innodb-buffer-pool-size=64M", "--max-connections=400",
            "--skip-name-resolve", "--skip-log-bin", *options,
        ]  # fmt: skip
        self.server = Server(command, directory / "log", self._is_ready, user)

    def initialise(self) -> None:
        program = require("mariadb-install-db", "mariadb-server")
        command = [
            program, "--no-defaults", *self._user, f"--datadir={self._directory}/data", "--skip-test-db",
            "--auth-root-authentication-method=normal", "--innodb-flush-method=nosync", "--innodb-log-file-size=8M",
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True)

    def connect(self, database: str | None = None, **options: Any) -> Any:
        import pymysql

        # Getting ready for TLS, which the server does not speak, would take longer than all the rest.
        return pymysql.connect(host=HOST, port=self.port, user="root", database=database, ssl_disabled=True, **options)

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        with contextlib.closing(self.connect(autocommit=True)) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def new_database(self) -> str:
        self._made += 1
        self.ask(f"CREATE DATABASE q{self._made}")
        return f"q{self._made}"

    def empty_queue(self, database: str) -> None:
        """As good as a new one, and quicker."""
        with contextlib.closing(self.connect(database, autocommit=True)) as connection, connection.cursor() as cursor:
            cursor.execute(f"SHOW TABLES WHERE Tables_in_{database} <> 'brook_schema'")
            for (table,) in cursor.fetchall():
                cursor.execute(f"DELETE FROM {table}")

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


class Redis:
    """One redis-server, which keeps nothing."""

    def __init__(self, directory: Path, port: int) -> None:
        self.port = port
        program = require("redis-server", "redis-server")
        command = [
            program, "--port", str(port), "--bind", HOST, "--save", "", "--appendonly", "no", "--dir", str(directory),
        ]  # fmt: skip
        self.server = Server(command, directory / "redis.log", self._is_ready)

    def _is_ready(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection((HOST, self.port), 1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
        return False


_PROVIDER = Path("/usr/lib/galera/libgalera_smm.so")
# A node that is gone is noticed within a few seconds, instead of five to fifteen.
_TIMES = (
    "evs.keepalive_period=PT0.5S;evs.inactive_check_period=PT0.5S;evs.suspect_timeout=PT4S;evs.inactive_timeout=PT10S"
)


class Galera:
    """Three nodes of a cluster on this machine. What copies data to who joins works for other users than root alone."""

    def __init__(self, directory: Path) -> None:
        """directory: one that any user can look into."""
        require("mariadbd", "mariadb-server", "galera-4")
        ports = free_ports(12)
        groups = ports[3:6]
        address = ",".join(f"{HOST}:{port}" for port in groups)
        self._directories = [directory / f"node{number}" for number in range(3)]
        self.nodes = []
        for place, port, group, transfer, copy in zip(
            self._directories, ports, groups, ports[6:9], ports[9:], strict=False
        ):
            place.mkdir()
            options = (
                f"gmcast.listen_addr=tcp://{HOST}:{group};ist.recv_addr={HOST}:{transfer};gcache.size=32M;{_TIMES}"
            )
            wsrep = [
                "--wsrep-on=ON", f"--wsrep-provider={_PROVIDER}", f"--wsrep-cluster-address=gcomm://{address}",
                f"--wsrep-node-address={HOST}:{group}", f"--wsrep-provider-options={options}",
                "--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--innodb-log-file-size=8M",
                "--wsrep-sst-method=rsync",
                f"--wsrep-sst-receive-address={HOST}:{copy}",
            ]  # fmt: skip
            self.nodes.append(MariaDb(place, port, *wsrep, user="mysql"))

    def start(self) -> None:
        first, *others = self.nodes
        first.initialise()
        for place in self._directories[1:]:
            (place / "data").mkdir()  # the first sends what it has
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", "mysql:mysql", *self._directories], check=True)
        first.server.launch("--wsrep-new-cluster")
        first.server.await_ready()
        for node in others:
            node.server.start()
        wait_until(lambda: self.size() == len(self.nodes), "three nodes")

    def size(self) -> int:
        """How many nodes the last one sees."""
        rows = self.nodes[-1].ask("SHOW STATUS WHERE Variable_name IN ('wsrep_cluster_size', 'wsrep_ready')")
        status = dict(rows)
        return int(status["wsrep_cluster_size"]) if status["wsrep_ready"] == "ON" else 0

    def url(self, database: str, first: int = 0) -> str:
        """With the nodes from one on, and then those before it."""
        hosts = [f"{HOST}:{node.port}" for node in self.nodes[first:] + self.nodes[:first]]
        return f"mysql://root@{','.join(hosts)}/{database}"

    def kill(self) -> None:
        for node in self.nodes:
            node.server.kill()

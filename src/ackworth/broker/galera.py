"""A Galera cluster: servers of MariaDB that all have the same data, and who of them begins.

1. A member that is started joins those that run. It gets what it missed: the last writes, if one of them still has
   these at hand, else everything. For the former it must know how far it was, which after a kill only the database
   itself can tell (`--wsrep-recover`).
2. Where none runs, the one that is furthest begins, whichever is started first, and the others join it. All of them
   commit in one order, so the furthest has whatever any of them has acked.
3. Where there is no data yet, the first one begins, and the others get a copy.
"""

import contextlib
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ackworth.broker import mariadb
from ackworth.broker.contract import Place
from ackworth.broker.mariadb import MariaDb
from ackworth.broker.ports import HOST
from ackworth.broker.server import dying_with_us
from ackworth.model.errors import BrokerFailed

PORTS = ("group", "writes", "copy")  # where members talk, and where one that joins gets the last writes, or everything
PROVIDER = Path("/usr/lib/galera/libgalera_smm.so")
RECOVER_WITHIN = 60.0
_STATE = "grastate.dat"  # a member's own note of how far it is; not kept while it runs
_POSITION = re.compile(rb"Recovered position: *([0-9a-f-]+:\d+)")
# MariaDB has rsync copy the data. A daemon of rsync that root starts becomes nobody, who must not write to the data: so
# there is one that stays root, and a way of copying, MariaDB's own but for this, that finds it before the other.
_COPYING = "rsync_as_root"
_SCRIPTS = {
    f"wsrep_sst_{_COPYING}": """#!/bin/sh
PATH=$(dirname "$0"):$PATH exec wsrep_sst_rsync "$@"
""",
    "rsync": """#!/bin/sh
case $1 in --daemon) shift; set -- --daemon --dparam=uid=0 --dparam=gid=0 "$@" ;; esac
PATH=${PATH#"$(dirname "$0"):"} exec rsync "$@"
""",
}


class Cluster:
    """All members."""

    def __init__(self) -> None:
        self.members: list[Member] = []

    def start(self, member: "Member") -> None:
        if not any(each.processes() for each in self.members):
            self._begin()
        if not member.processes():
            member.join()

    def _begin(self) -> None:
        if any(member.has_joined_before for member in self.members):
            self._begin_from_the_furthest()
        else:
            self.members[0].begin_anew()

    def _begin_from_the_furthest(self) -> None:
        positions = {member: position for member in self.members if (position := member.position()) is not None}
        if not positions:
            raise BrokerFailed("no member of the cluster can tell how far it was: see their logs")
        furthest = max(positions, key=lambda member: int(positions[member].rpartition(":")[2]))
        furthest.begin(positions[furthest])


class Member(MariaDb):
    """A node of the cluster."""

    def __init__(
        self, name: str, command: Sequence[str], places: Mapping[str, Place], first: Path, cluster: Cluster
    ) -> None:
        """First: a file of statements that a new cluster begins with."""
        place = places[name]
        super().__init__(
            name,
            [*command, *options(name, places)],
            place.data / "data",
            place.logs / f"{name}.log",
            place.ports["client"],
            {"PATH": f"{os.environ.get('PATH', os.defpath)}:{_scripts(place.logs)}"},
        )
        self._first = first
        self._cluster = cluster
        cluster.members.append(self)

    def start(self) -> None:
        self._cluster.start(self)

    def begin_anew(self) -> None:
        self._launch(self._making([*self._command, "--wsrep-new-cluster", f"--init-file={self._first}"]))

    def begin(self, position: str) -> None:
        """Whoever calls it vouches for it that nobody is further."""
        state = self.data / _STATE
        with contextlib.suppress(FileNotFoundError):  # a power cut may have taken it
            state.write_text(state.read_text().replace("safe_to_bootstrap: 0", "safe_to_bootstrap: 1"))
        self._launch([*self._command, "--wsrep-new-cluster", f"--wsrep-start-position={position}"])

    def join(self) -> None:
        position = self.position()
        self._launch([*self._command, *([f"--wsrep-start-position={position}"] if position else [])])

    def joined(self) -> bool:
        import pymysql

        with contextlib.suppress(pymysql.Error), self.asked(within=mariadb.ANSWERS_WITHIN) as cursor:
            cursor.execute("SHOW STATUS LIKE 'wsrep_local_state_comment'")
            return bool(cursor.fetchone()[1] == "Synced")
        return False

    @property
    def has_joined_before(self) -> bool:
        return (self.data / _STATE).exists()

    def position(self) -> str | None:
        """How far it is, as the cluster's id and a number; None if it has nothing, or nothing that can be used."""
        if not self.has_joined_before:
            return None
        said = self._recover()
        with self._log.open("ab") as log:
            log.write(said)
        found = _POSITION.findall(said)
        return found[-1].decode() if found else None

    def _recover(self) -> bytes:
        try:
            return subprocess.run(
                [*self._command, "--wsrep-recover"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=RECOVER_WITHIN,
                check=False,
                preexec_fn=dying_with_us(),
            ).stderr
        except subprocess.TimeoutExpired:
            raise BrokerFailed(f"{self.name} did not tell within {RECOVER_WITHIN:g} s how far it was") from None


def options(name: str, places: Mapping[str, Place]) -> list[str]:
    ports = places[name].ports
    group = ",".join(f"{HOST}:{place.ports['group']}" for place in places.values())
    provider = {
        "gmcast.listen_addr": f"tcp://{HOST}:{ports['group']}",
        "ist.recv_addr": f"{HOST}:{ports['writes']}",
        "pc.wait_prim_timeout": "PT60S",  # the one that begins may first have to make its directory
        "pc.recovery": "false",  # who begins is decided here; and as who it was, it is let in late
    }
    return [
        "--wsrep-on=ON",
        f"--wsrep-provider={PROVIDER}",
        f"--wsrep-provider-options={';'.join(f'{key}={value}' for key, value in provider.items())}",
        f"--wsrep-cluster-address=gcomm://{group}",
        f"--wsrep-node-name={name}",
        f"--wsrep-node-address={HOST}:{ports['group']}",
        f"--wsrep-sst-method={_COPYING if os.geteuid() == 0 else 'rsync'}",
        f"--wsrep-sst-receive-address={HOST}:{ports['copy']}",
        "--binlog-format=ROW",
        "--innodb-autoinc-lock-mode=2",
    ]


def _scripts(logs: Path) -> Path:
    """A folder with them."""
    folder = logs / "galera"
    folder.mkdir(exist_ok=True)
    for name, text in _SCRIPTS.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder

"""Brook on MariaDB: the queue inside a database server, alone or with Redis to hand out places.

The server is a mariadbd of the run's own, in a directory of its own. The first start makes the directory and the
database; whatever of that a power cut takes away, the next start makes again.
"""

import contextlib
import importlib.util
import subprocess
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from ackworth.broker import debian
from ackworth.broker.brook_sqlite import MESSAGE_TABLES, RETRIES
from ackworth.broker.contract import Place, Setting
from ackworth.broker.ports import HOST
from ackworth.broker.server import Server, find_program, not_installed
from ackworth.model.files import cache
from ackworth.model.verdict import Claims

DATABASE = "brook"
MARIADB, REDIS = "mariadb", "redis"
_NODES = {"single": (MARIADB,), "with-redis": (MARIADB, REDIS)}
_FLUSH = {"full": 1, "normal": 2, "off": 0}  # innodb_flush_log_at_trx_commit
_SURVIVES = {
    "full": frozenset({"sigterm", "kill", "pause", "power-cut"}),
    "normal": frozenset({"sigterm", "kill", "pause"}),
    "off": frozenset({"sigterm", "pause"}),
}
# An empty database takes seconds to make, and is always the same: it is made once, and copied. A directory that was not
# made to its end is made anew.
_SCRIPT = """
data=$1 made=$1/made empty=$2; shift 2
if [ ! -e "$empty" ]; then
    mariadb-install-db --no-defaults --user="$(id -un)" --datadir="$empty.$$" --skip-test-db \
        --auth-root-authentication-method=normal --innodb-log-file-size=32M || exit 1
    mv -T "$empty.$$" "$empty" || rm -rf "$empty.$$"  # another run may have been faster
fi
if [ ! -e "$made" ]; then
    rm -rf "$data"/* && cp -r --sparse=always "$empty"/. "$data" && sync -f "$data" && touch "$made" || exit 1
fi
exec "$@"
"""


class Database(Server):
    """The server with the queue."""

    def __init__(self, name: str, command: Sequence[str | Path], log: Path, port: int) -> None:
        super().__init__(name, command, log)
        self._port = port

    def truncate(self) -> None:
        import pymysql

        with (
            contextlib.closing(pymysql.connect(host=HOST, port=self._port, user="root", database=DATABASE)) as database,
            database.cursor() as cursor,
        ):
            for table in MESSAGE_TABLES:
                cursor.execute(f"DELETE FROM {table}")
            database.commit()


class BrookMariadb:
    name = "brook-mariadb"
    summary = "Brook, the queue inside a MariaDB database, alone or with Redis to hand out places"
    driver = "brook"
    embedded = False
    topologies = tuple(_NODES)
    ports = ("client",)
    settings: Mapping[str, Setting] = {
        "durability": Setting(
            means="when MariaDB writes and syncs its log (innodb_flush_log_at_trx_commit): both at every commit (1), "
            "written at every commit and synced every second (2), both every second (0)",
            values=tuple(_FLUSH),
            default="full",
        ),
        "retries": RETRIES,
    }
    overhead = 128.0
    growth = 4.0  # pages are half full, and the log and the undo log hold what was written last

    def missing(self) -> str | None:
        if importlib.util.find_spec("pymysql") is None:
            return "the Python driver of MariaDB is not installed: pip install pymysql"
        return not_installed(self.name, "mariadbd", "mariadb-install-db", "redis-server")

    def install(self) -> str:
        redis = debian.install(package="redis-server", service="redis-server")
        return f"{debian.install(package='mariadb-server', service='mariadb')}; {redis}"

    def version(self) -> str:
        return f"brook {metadata.version('brook-queue')}, MariaDB {server_version()}"

    def claims(self, settings: Mapping[str, Any]) -> Claims:
        return Claims(
            survives=_SURVIVES[settings["durability"]],
            ordered=True,
            once=True,
            source="Brook's README; MariaDB documentation, 'innodb_flush_log_at_trx_commit'",
        )

    def nodes(self, topology: str) -> Sequence[str]:
        return _NODES[topology]

    def node(self, name: str, place: Place, settings: Mapping[str, Any]) -> Server:
        log, port = place.logs / f"{name}.log", place.ports["client"]
        if name == REDIS:
            return Server(name, redis_command(place.data, port), log)
        made = place.logs / f"{name}.sql"
        made.write_text(f"CREATE DATABASE IF NOT EXISTS {DATABASE};\n")
        data = place.data / "data"
        data.mkdir(exist_ok=True)
        server = server_command(data, made, port, _FLUSH[settings["durability"]])
        empty = cache() / f"mariadb-{server_version()}"
        empty.parent.mkdir(parents=True, exist_ok=True)
        return Database(name, ["sh", "-c", _SCRIPT, "sh", str(data), str(empty), *server], log, port)

    def address(self, places: Mapping[str, Place], settings: Mapping[str, Any]) -> dict[str, Any]:
        url = f"mysql://root@{HOST}:{places[MARIADB].ports['client']}/{DATABASE}"
        if REDIS in places:
            url += f"?redis={HOST}:{places[REDIS].ports['client']}"
        # Whoever waits longer waits for a server that is gone, and has not sent anything.
        return {"url": url, "patience": 5.0, **settings}


def server_version() -> str:
    """'10.11.6' from 'mariadbd  Ver 10.11.6-MariaDB-0+deb12u1 for …'."""
    program = find_program("mariadbd") or "mariadbd"
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    return said.partition("Ver ")[2].partition("-")[0]


def server_command(data: Path, first: Path, port: int, flush: int) -> list[str]:
    return [
        find_program("mariadbd") or "mariadbd",
        "--no-defaults",
        f"--datadir={data}",
        f"--bind-address={HOST}",
        f"--port={port}",
        f"--socket={data}/socket",
        f"--pid-file={data}/pid",
        f"--init-file={first}",
        f"--innodb-flush-log-at-trx-commit={flush}",
        "--innodb-log-file-size=32M",
        "--innodb-buffer-pool-size=256M",
        "--max-connections=500",
        "--skip-name-resolve",
        "--skip-log-bin",
        "--user=root",
    ]


def redis_command(data: Path, port: int) -> list[str]:
    """Nothing is kept: what Redis hands out can be lost at any time."""
    program = find_program("redis-server") or "redis-server"
    return [program, "--port", str(port), "--bind", HOST, "--save", "", "--appendonly", "no", "--dir", str(data)]


BROKER = BrookMariadb()

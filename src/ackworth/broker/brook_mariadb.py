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
from urllib.parse import urlencode, urlsplit

from ackworth.broker import debian, urls
from ackworth.broker.brook_sqlite import MESSAGE_TABLES, RETRIES
from ackworth.broker.contract import Place, Setting
from ackworth.broker.ports import HOST
from ackworth.broker.server import Server, find_program
from ackworth.model.errors import BadInput
from ackworth.model.verdict import Claims

DATABASE = "brook"
PATIENCE = 5.0  # seconds: whoever waits longer waits for a server that is gone, and has not sent anything
MARIADB, REDIS = "mariadb", "redis"
_NODES = {"single": (MARIADB,), "with-redis": (MARIADB, REDIS)}
_FLUSH = {"full": 1, "normal": 2, "off": 0}  # innodb_flush_log_at_trx_commit
_SURVIVES = {
    "full": frozenset({"sigterm", "kill", "pause", "power-cut"}),
    "normal": frozenset({"sigterm", "kill", "pause"}),
    "off": frozenset({"sigterm", "pause"}),
}
# A directory that was not made to its end is made anew.
_SCRIPT = """
data=$1 made=$1/made; shift
if [ ! -e "$made" ]; then
    rm -rf "$data"/* && mariadb-install-db --no-defaults --user="$(id -un)" --datadir="$data" --skip-test-db \
        --auth-root-authentication-method=normal --innodb-log-file-size=32M && sync && touch "$made" || exit 1
fi
exec "$@"
"""


class Database(Server):
    """The server with the queue."""

    def __init__(self, name: str, command: Sequence[str | Path], log: Path, port: int, temporary: Path) -> None:
        # Not in a directory that is others' too: a server that starts removes what is left there, whoever left it.
        super().__init__(name, command, log, {"TMPDIR": str(temporary)})
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
    schemes: Mapping[str, int] = {"mysql": 3306, "mysqls": 3306}
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
        remedy = f"run `ackworth brokers install {self.name}`"
        for program in ("mariadbd", "mariadb-install-db", "redis-server"):
            if find_program(program) is None:
                return f"{program} is not installed: {remedy}"
        if importlib.util.find_spec("pymysql") is None:
            return "the Python driver of MariaDB is not installed: pip install pymysql"
        return None

    def install(self) -> str:
        redis = debian.install(package="redis-server", service="redis-server")
        return f"{debian.install(package='mariadb-server', service='mariadb')}; {redis}"

    def version(self) -> str:
        """'… MariaDB 10.11.6' from 'mariadbd  Ver 10.11.6-MariaDB-0+deb12u1 for …'."""
        program = find_program("mariadbd") or "mariadbd"
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
        server = said.partition("Ver ")[2].partition("-")[0]
        return f"brook {metadata.version('brook-queue')}, MariaDB {server}"

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
        data, temporary = place.data / "data", place.data / "tmp"
        for folder in (data, temporary):
            folder.mkdir(exist_ok=True)
        server = server_command(data, made, port, _FLUSH[settings["durability"]])
        return Database(name, ["sh", "-c", _SCRIPT, "sh", str(data), *server], log, port, temporary)

    def address(self, places: Mapping[str, Place], settings: Mapping[str, Any]) -> dict[str, Any]:
        url = f"mysql://root@{HOST}:{places[MARIADB].ports['client']}/{DATABASE}"
        if REDIS in places:
            url += f"?redis={HOST}:{places[REDIS].ports['client']}"
        return {"url": url, "patience": PATIENCE, **settings}

    def attached(self, url: str, settings: Mapping[str, Any], name: str) -> dict[str, Any]:
        """The path is a database that has no queue yet; `redis` is the host and port of who hands out places."""
        found = urls.parse(url, self.schemes, ["redis"], several=True)
        if not found.user or not found.path:
            raise BadInput(f"{found.shown}: no user or no database in it: write it as {urls.FORM}/DATABASE")
        options = urlencode({**found.options, **(found.tls or {})}, safe=":/")
        return {"url": urlsplit(url)._replace(query=options).geturl(), "patience": PATIENCE, **settings}


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

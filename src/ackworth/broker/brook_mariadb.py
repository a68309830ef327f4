"""Brook on MariaDB: the queue inside a server, alone or with Redis to hand out places, or inside a cluster of three."""

import importlib.util
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from ackworth.broker import debian, mariadb, urls
from ackworth.broker.brook_sqlite import RETRIES
from ackworth.broker.contract import SINGLE, Place, Setting
from ackworth.broker.galera import PORTS, PROVIDER, Cluster, Member
from ackworth.broker.mariadb import DATABASE, MariaDb
from ackworth.broker.ports import HOST
from ackworth.broker.server import Server, find_program, not_installed
from ackworth.model.errors import BadInput
from ackworth.model.verdict import Claims

GALERA = "galera"
MARIADB, REDIS = "mariadb", "redis"
_NODES = {SINGLE: (MARIADB,), "with-redis": (MARIADB, REDIS), GALERA: ("galera-1", "galera-2", "galera-3")}
_NEEDS = {"with-redis": ("redis-server",), GALERA: ("rsync", PROVIDER)}
_FLUSH = {"full": 1, "normal": 2, "off": 0}  # innodb_flush_log_at_trx_commit
_FLUSHING = "'innodb_flush_log_at_trx_commit'"
_SOURCES = {GALERA: f"{_FLUSHING} and 'About Galera Replication'"}
_EVERYTHING = frozenset({"sigterm", "kill", "pause", "power-cut"})
_SURVIVES = {
    "full": _EVERYTHING,
    "normal": frozenset({"sigterm", "kill", "pause"}),
    "off": frozenset({"sigterm", "pause"}),
}


class BrookMariadb:
    name = "brook-mariadb"
    summary = "Brook, the queue inside a MariaDB database: alone, with Redis to hand out places, or in a Galera cluster"
    driver = "brook"
    embedded = False
    topologies = tuple(_NODES)
    ports: tuple[str, ...] = ("client", *PORTS)
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

    def missing(self, topology: str = SINGLE) -> str | None:
        if importlib.util.find_spec("pymysql") is None:
            return "the Python driver of MariaDB is not installed: pip install pymysql"
        return not_installed(self.name, *mariadb.PROGRAMS, *_NEEDS.get(topology, ()))

    def install(self) -> str:
        redis = debian.install(package="redis-server", service="redis-server")
        return f"{debian.install(package='mariadb-server', service='mariadb')}; {redis}"

    def version(self) -> str:
        return f"brook {metadata.version('brook-queue')}, MariaDB {mariadb.version()}"

    def claims(self, settings: Mapping[str, Any], topology: str = SINGLE) -> Claims:
        return Claims(
            survives=_SURVIVES[settings["durability"]],
            survives_in_part=_EVERYTHING if topology == GALERA else frozenset(),
            ordered=True,
            once=True,
            source=f"Brook's README; MariaDB documentation, {_SOURCES.get(topology, _FLUSHING)}",
        )

    def nodes(self, topology: str) -> Sequence[str]:
        return _NODES[topology]

    def build(self, places: Mapping[str, Place], settings: Mapping[str, Any]) -> list[Server]:
        cluster, flush = Cluster(), _FLUSH[settings["durability"]]
        return [_node(name, places, flush, cluster) for name in places]

    def address(self, places: Mapping[str, Place], settings: Mapping[str, Any]) -> dict[str, Any]:
        hosts = [f"{HOST}:{place.ports['client']}" for name, place in places.items() if name != REDIS]
        redis = f"?redis={HOST}:{places[REDIS].ports['client']}" if REDIS in places else ""
        turns = [hosts[turn:] + hosts[:turn] for turn in range(len(hosts))]
        return {
            "urls": [f"mysql://root@{','.join(turn)}/{DATABASE}{redis}" for turn in turns],
            "patience": _patience(hosts),
            **settings,
        }

    def attached(self, url: str, settings: Mapping[str, Any], name: str) -> dict[str, Any]:
        """The path is a database that has no queue yet; `redis` is the host and port of who hands out places."""
        found = urls.parse(url, self.schemes, ["redis"], several=True)
        if not found.user or not found.path:
            raise BadInput(f"{found.shown}: no user or no database in it: write it as {urls.FORM}/DATABASE")
        options = urlencode({**found.options, **(found.tls or {})}, safe=":/")
        hosts = urlsplit(url).netloc.split(",")
        return {"urls": [urlsplit(url)._replace(query=options).geturl()], "patience": _patience(hosts), **settings}


def _patience(hosts: Sequence[str]) -> float:
    """Whoever waits longer waits for a server that is gone, and has not sent anything.

    A cluster stands still for a few seconds, until it has given up on a member that is gone.
    """
    return 5.0 if len(hosts) == 1 else 30.0


def _node(name: str, places: Mapping[str, Place], flush: int, cluster: Cluster) -> Server:
    place = places[name]
    log, port, data = place.logs / f"{name}.log", place.ports["client"], place.data / "data"
    if name == REDIS:
        return Server(name, redis_command(place.data, port), log)
    first = place.logs / f"{name}.sql"
    first.write_text(f"CREATE DATABASE IF NOT EXISTS {DATABASE};\n")
    command = mariadb.command(data, port, flush)
    if name == MARIADB:
        return MariaDb(name, [*command, f"--init-file={first}"], data, log, port)
    return Member(name, command, places, first, cluster)


def redis_command(data: Path, port: int) -> list[str]:
    """Nothing is kept: what Redis hands out can be lost at any time."""
    program = find_program("redis-server") or "redis-server"
    return [program, "--port", str(port), "--bind", HOST, "--save", "", "--appendonly", "no", "--dir", str(data)]


BROKER = BrookMariadb()

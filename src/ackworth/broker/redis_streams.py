"""Redis Streams: one redis-server, its append-only file off, synced every second, or synced before every answer.

With `off` the snapshots are as Redis ships them (`save 3600 1 300 100 60 10000`): what somebody gets who
changes nothing. It is these save points that make Redis write a snapshot when it is told to end, so an orderly
stop keeps everything. With the append-only file there are no save points: the file alone is on trial.

`everysec` does not claim to survive a kill. While a sync takes long, Redis holds back its writes to the file
for up to two seconds and answers all the same; its documentation speaks of a second that may be lost.
"""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ackworth.broker import debian, urls
from ackworth.broker.contract import SINGLE, OneByOne, Place, Setting
from ackworth.broker.ports import HOST
from ackworth.broker.server import Server, find_program, not_installed
from ackworth.model.errors import BadInput, BrokerFailed
from ackworth.model.verdict import Claims

PROGRAM = "redis-server"
REPAIR = "redis-check-aof"
_PERSISTENCE = {
    "off": ("appendonly no", "save 3600 1 300 100 60 10000"),
    "everysec": ("appendonly yes", "appendfsync everysec", 'save ""'),
    "always": ("appendonly yes", "appendfsync always", 'save ""'),
}
_SURVIVES = {
    "off": frozenset({"sigterm", "pause"}),
    "everysec": frozenset({"sigterm", "pause"}),
    "always": frozenset({"sigterm", "kill", "pause", "power-cut"}),
}


class AppendOnly(Server):
    """A server whose append-only file can be repaired: cut off where it stops making sense."""

    def __init__(self, name: str, command: Sequence[str], log: Path, data: Path) -> None:
        super().__init__(name, command, log)
        self._data = data

    def repair(self) -> str:
        tool = [find_program(REPAIR) or REPAIR, "--fix", *map(str, self._data.glob("appendonlydir/*.manifest"))]
        try:
            done = subprocess.run(tool, input="y\n", capture_output=True, text=True, check=False)
        except OSError as error:
            raise BrokerFailed(f"{REPAIR} cannot be started: {error.strerror}") from error
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        if done.returncode:
            raise BrokerFailed(f"{REPAIR} could not repair it: {' | '.join(lines[-3:])}")
        return f"{REPAIR} --fix: {lines[-1]}"


class RedisStreams(OneByOne):
    name = "redis-streams"
    summary = "Redis with a stream for each topic and a consumer group for each group"
    driver = "resp"
    embedded = False
    topologies = (SINGLE,)
    ports = ("client",)
    schemes: Mapping[str, int] = {"redis": 6379, "rediss": 6379}
    settings: Mapping[str, Setting] = {
        "appendonly": Setting(
            means="when the append-only file is synced: before every answer, every second, or there is none",
            values=("always", "everysec", "off"),
            default="always",
        ),
    }
    overhead = 160.0  # a command in the append-only file has a key, an id and the lengths of all its parts
    growth = 2.5  # while the file is rewritten there are two of it

    def missing(self, topology: str = SINGLE) -> str | None:
        return not_installed(self.name, PROGRAM)

    def install(self) -> str:
        return debian.install(package="redis-server", service="redis-server")

    def version(self) -> str:
        """'Redis 7.0.15' from 'Redis server v=7.0.15 sha=…'."""
        said = subprocess.run(
            [find_program(PROGRAM) or PROGRAM, "--version"], capture_output=True, text=True, check=False
        ).stdout
        return f"Redis {said.partition('v=')[2].partition(' ')[0]}"

    def claims(self, settings: Mapping[str, Any], topology: str = SINGLE) -> Claims:
        return Claims(
            survives=_SURVIVES[settings["appendonly"]],
            ordered=True,
            once=True,
            source="Redis documentation, 'Redis persistence' and 'Redis signal handling'",
        )

    def nodes(self, topology: str) -> Sequence[str]:
        return ("redis",)

    def node(self, name: str, place: Place, settings: Mapping[str, Any]) -> Server:
        file = place.logs / f"{name}.conf"
        file.write_text(configuration(place, settings["appendonly"]))
        command = [find_program(PROGRAM) or PROGRAM, str(file)]
        log = place.logs / f"{name}.log"
        if settings["appendonly"] == "off":
            return Server(name, command, log)  # for a snapshot Redis has a tool that checks, and none that repairs
        return AppendOnly(name, command, log, place.data)

    def address(self, places: Mapping[str, Place], settings: Mapping[str, Any]) -> dict[str, Any]:
        return {"host": HOST, "port": places["redis"].ports["client"]}

    def attached(self, url: str, settings: Mapping[str, Any], name: str) -> dict[str, Any]:
        """The path is the number of a database."""
        found = urls.parse(url, self.schemes)
        database = found.path or "0"
        if not database.isdigit():
            raise BadInput(f"{found.shown}: the path of the URL is the number of a database, not '{database}'")
        return {**found.address, "database": int(database)}


def configuration(place: Place, appendonly: str) -> str:
    lines = [
        f"bind {HOST}",
        f"port {place.ports['client']}",
        f"dir {quoted(place.data)}",
        *_PERSISTENCE[appendonly],
    ]
    return "".join(f"{line}\n" for line in lines)


def quoted(path: Path) -> str:
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


BROKER = RedisStreams()

"""Brook on SQLite: the queue inside a database file, and what Ackworth runs on out of the box."""

import contextlib
import signal
import sqlite3
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from ackworth.broker.contract import SINGLE, OneByOne, Place, Setting
from ackworth.broker.process import holders, kill_and_wait, send, states, wait_until
from ackworth.model.errors import BadInput, BrokerFailed
from ackworth.model.verdict import Claims

FILE = "brook.db"
PATIENCE = 30.0  # seconds: whoever waits for the file's lock waits for others who work
MESSAGE_TABLES = ("brook_run", "brook_body")
RETRIES = Setting(
    means="when a refused message comes again: 16 times up Brook's ladder, which takes 2 h 46 min, or by 0.1 s",
    values=("ladder", "quick"),
    default="ladder",
    priced=False,
)
_SURVIVES = {
    "full": frozenset({"sigterm", "kill", "pause", "power-cut"}),
    "normal": frozenset({"sigterm", "kill", "pause"}),
    "off": frozenset({"sigterm", "kill", "pause"}),
}


class DatabaseFile:
    """The node: every process that has the database open."""

    def __init__(self, name: str, data: Path) -> None:
        self.name = name
        self._data = data

    def start(self) -> None:
        """There is nothing to start: whoever opens the database first repairs it."""

    def processes(self) -> list[int]:
        return holders(self._data)

    def look(self) -> None:
        """A file does not end."""

    def truncate(self) -> None:
        """Raises BrokerFailed."""
        try:
            with contextlib.closing(sqlite3.connect(self._data / FILE, timeout=60, isolation_level=None)) as database:
                database.execute("BEGIN IMMEDIATE")
                for table in MESSAGE_TABLES:
                    database.execute(f"DELETE FROM {table}")
                database.execute("COMMIT")
        except sqlite3.Error as error:
            raise BrokerFailed(f"node {self.name} does not let its messages be deleted: {error}") from error

    def stop(self) -> None:
        pids = self.processes()
        send(pids, signal.SIGTERM)
        try:
            wait_until(lambda: all(states(pid) <= set("ZX") for pid in pids), 30, "ending in good order")
        finally:
            kill_and_wait(self.processes())


class BrookSqlite(OneByOne):
    name = "brook-sqlite"
    summary = "Brook, the queue inside a SQLite database: nothing to install"
    driver = "brook"
    embedded = True
    topologies = (SINGLE,)
    ports = ()
    schemes: Mapping[str, int] = {"sqlite": 0}
    settings: Mapping[str, Setting] = {
        "durability": Setting(
            means="when SQLite syncs the disk: at every commit, at checkpoints only, never",
            values=("full", "normal", "off"),
            default="full",
        ),
        "retries": RETRIES,
    }
    overhead = 64.0
    growth = 2.0

    def missing(self, topology: str = SINGLE) -> str | None:
        return None

    def version(self) -> str:
        return f"brook {metadata.version('brook-queue')}, SQLite {sqlite3.sqlite_version}"

    def claims(self, settings: Mapping[str, Any], topology: str = SINGLE) -> Claims:
        return Claims(
            survives=_SURVIVES[settings["durability"]],
            ordered=True,
            once=True,
            source="Brook's README; SQLite, 'PRAGMA synchronous' in WAL mode",
        )

    def nodes(self, topology: str) -> Sequence[str]:
        return ("database",)

    def node(self, name: str, place: Place, settings: Mapping[str, Any]) -> DatabaseFile:
        return DatabaseFile(name, place.data)

    def address(self, places: Mapping[str, Place], settings: Mapping[str, Any]) -> dict[str, Any]:
        return {"urls": [f"sqlite:///{places['database'].data / FILE}"], "patience": PATIENCE, **settings}

    def attached(self, url: str, settings: Mapping[str, Any], name: str) -> dict[str, Any]:
        """The path of a file that is not there yet, as Brook has it: sqlite:///relative or sqlite:////absolute."""
        path = url.removeprefix("sqlite:///")
        if path == url or not path:
            raise BadInput(f"--attach {url}: names no file: write sqlite:///relative/path.db or sqlite:////absolute.db")
        if not (folder := Path(path).absolute().parent).is_dir():
            raise BadInput(f"--attach {url}: there is no directory {folder}: create it")
        return {"urls": [f"sqlite:///{Path(path).absolute()}"], "patience": PATIENCE, **settings}


BROKER = BrookSqlite()

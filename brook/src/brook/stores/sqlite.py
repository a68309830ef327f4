"""The queue in a SQLite file.

How the rules of `base` are kept: SQLite has one write lock for the whole database. Every change here is
one transaction that takes it at the beginning (BEGIN IMMEDIATE) and holds it until its commit, so that
changes happen one after the other, in the order of their commits. Reading bodies needs no lock: what is
claimed does not change.
"""

from collections.abc import Sequence
from pathlib import Path

from brook.model import Durability
from brook.packing import Run
from brook.sql import sqlite as sql
from brook.stores.base import Writer
from brook.stores.session import PAGE, Session
from brook.stores.sql import SqlStore
from brook.stores.sqlite_database import SqliteDatabase
from brook.stores.sqlite_transaction import CallersTransaction


class SqliteStore(SqlStore):
    def __init__(
        self, path: Path, *, durability: Durability = "full", patience: float = 5.0, create: bool = True
    ) -> None:
        self._file = SqliteDatabase(path, durability=durability, patience=patience, create=create)
        super().__init__(self._file)

    def append(self, runs: Sequence[Run], now: float) -> list[int]:
        size = sum(len(run.data) for run in runs) + PAGE * len(runs)
        return self._file.write(lambda db: db.append(runs, now), size)

    def within(self, connection: object) -> Writer:
        return CallersTransaction(self._file, connection)

    def remove(self) -> None:
        self._drop(sql.TABLES)

    def _version(self, db: Session) -> int | None:
        ((version,),) = db.rows(sql.DATA_VERSION)
        return int(version)

"""Appending to SQLite in a transaction of the caller's own.

How it keeps rule 1 of `base`: before it looks at an offset it takes SQLite's write lock, which no other transaction
gets before this one has ended. So others cannot take a later place meanwhile, and what is rolled back takes its
place back with it. In return others wait as long as it stays open.
"""

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from brook.errors import BadSetting, DatabaseLocked
from brook.packing import Run
from brook.sql import sqlite as sql
from brook.stores import writing
from brook.stores.sqlite_database import SqliteDatabase
from brook.stores.sqlite_session import SqliteSession


class CallersTransaction:
    def __init__(self, database: SqliteDatabase, connection: object) -> None:
        if not isinstance(connection, sqlite3.Connection):
            raise BadSetting(f"{connection!r}: not a connection to SQLite: give the one that has your transaction")
        self._database = database
        self._connection = connection
        self._require_same_file()

    def topics(self) -> dict[str, int]:
        with self._writing() as db:
            return writing.topics(db)

    def create_topics(self, names: Collection[str]) -> None:
        with self._writing() as db:
            writing.create_topics(db, names)

    def append(self, runs: Sequence[Run], now: float) -> list[int]:
        with self._writing() as db:
            return db.append(runs, now)

    @contextmanager
    def _writing(self) -> Iterator[SqliteSession]:
        """Under the write lock; what fails halfway leaves nothing, even if the caller commits."""
        with self._database.translated():
            self._database.check_open()
            db = self._cursor()
            self._take_lock(db)
            db.execute("SAVEPOINT brook")
            try:
                yield SqliteSession(db)
            except BaseException:
                # If the disk is full SQLite may have rolled back all of it, the caller's part too.
                if self._connection.in_transaction:
                    db.execute("ROLLBACK TO brook")
                    db.execute("RELEASE brook")
                raise
            db.execute("RELEASE brook")

    def _take_lock(self, db: sqlite3.Cursor) -> None:
        try:
            if self._connection.in_transaction:
                db.execute(sql.TAKE_WRITE_LOCK)
            else:
                self._require_transactions()
                db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY_SNAPSHOT:
                raise
            raise DatabaseLocked(
                f"{self._database.path}: others have written since your transaction began to read: "
                "begin it with BEGIN IMMEDIATE, or try it again"
            ) from error

    def _cursor(self) -> sqlite3.Cursor:
        """One that returns plain rows, whatever the caller likes."""
        cursor = self._connection.cursor()
        cursor.row_factory = None
        return cursor

    def _require_transactions(self) -> None:
        if self._connection.isolation_level is None or getattr(self._connection, "autocommit", None) is True:
            raise BadSetting(f"{self._connection!r}: commits each statement on its own: BEGIN a transaction first")

    def _require_same_file(self) -> None:
        rows = self._cursor().execute("PRAGMA database_list").fetchall()
        files = [Path(file) for _, name, file in rows if name == "main" and file]
        if not files or not files[0].samefile(self._database.path):
            where = str(files[0]) if files else "memory"
            raise BadSetting(f"{where}: your transaction is in another database than the queue {self._database.path}")

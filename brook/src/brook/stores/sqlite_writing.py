"""Appending in SQLite, in a transaction of ours or of the caller's own.

How the caller's transaction keeps rule 1 of `base`: before it looks at an offset it takes SQLite's write lock,
which no other transaction gets before this one has ended. So others cannot take a later place meanwhile,
and what is rolled back takes its place back with it. In return others wait as long as it stays open.
"""

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from brook.errors import BadSetting, DatabaseLocked, Forbidden, UnknownTopic
from brook.packing import Run
from brook.sql import sqlite as sql
from brook.stores import sqlite_labels as labels
from brook.stores.sqlite_database import Database
from brook.stores.sqlite_places import Executor, to_place


def topics(db: Executor) -> dict[str, int]:
    return dict(db.execute(sql.ALL_TOPICS).fetchall())


def create_topics(db: Executor, names: Collection[str]) -> None:
    db.executemany(sql.ADD_TOPIC, [(name,) for name in names])
    db.execute(sql.FOLLOW_NEW_TOPICS)


def append(db: Executor, runs: Sequence[Run], now: float) -> list[int]:
    nexts = _next_offsets(db, {run.topic for run in runs})
    last_body = nexts.pop(0)
    firsts = []
    for run in runs:
        firsts.append(nexts[run.topic])
        nexts[run.topic] += run.messages
    ids = range(last_body + 1, last_body + 1 + len(runs))
    sent = int(now * 1000)
    db.execute(sql.MOVE_LAST_BODY, (last_body + len(runs),))
    db.executemany(sql.ADD_BODY, [(i, r.data, r.sizes, r.extras) for i, r in zip(ids, runs, strict=True)])
    db.executemany(
        sql.ADD_RUN,
        [
            (to_place(run.topic, first), run.messages, sent, body, len(run.data), run.sender)
            for body, first, run in zip(ids, firsts, runs, strict=True)
        ],
    )
    labels.add(db, [(to_place(run.topic, first), run) for first, run in zip(firsts, runs, strict=True)])
    db.executemany(sql.MOVE_NEXT_OFFSET, nexts.items())
    return firsts


class CallersTransaction:
    def __init__(self, database: Database, connection: object) -> None:
        if not isinstance(connection, sqlite3.Connection):
            raise BadSetting(f"{connection!r}: not a connection to SQLite: give the one that has your transaction")
        self._database = database
        self._connection = connection
        self._require_same_file()

    def topics(self) -> dict[str, int]:
        with self._writing() as db:
            return topics(db)

    def create_topics(self, names: Collection[str]) -> None:
        with self._writing() as db:
            create_topics(db, names)

    def append(self, runs: Sequence[Run], now: float) -> list[int]:
        with self._writing() as db:
            return append(db, runs, now)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Cursor]:
        """Under the write lock; what fails halfway leaves nothing, even if the caller commits."""
        with self._database.translated():
            self._database.check_open()
            db = self._cursor()
            self._take_lock(db)
            db.execute("SAVEPOINT brook")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK TO brook")
                raise
            finally:
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


def _next_offsets(db: Executor, topics: set[int]) -> dict[int, int]:
    """And the last body's id, as the next offset of topic 0."""
    rows = db.execute(sql.NEXT_OFFSETS, (str(list(topics)),)).fetchall()
    require_none_missing(topics - {topic for topic, _, _ in rows})
    for topic, _, rule in rows:
        if rule in ("read-only", "closed"):
            raise Forbidden(f"topic {topic} is {rule}: nothing can be sent to it: change its rule, or send elsewhere")
    return {topic: following for topic, following, _ in rows}


def require_none_missing(topics: set[int]) -> None:
    if topics:
        raise UnknownTopic(f"{min(topics)}: no topic has this id: use those that create_topics() returned")

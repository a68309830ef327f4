"""One SQLite file in WAL mode: how it is opened, written to, read, and kept short.

- All writing of a process goes through one connection and all reading through another, each behind a
  lock: threads queue here, where waking up is quick, and not at SQLite's lock, which is polled.
- A busy process must not starve the others. Before SQLite's lock there is a door, a file of its own that
  is locked: the one process inside it is next, because whoever has just let go of SQLite's lock, and wants
  it again, has to wait before the door.
- A commit is synced with durability `full`: SQLite then syncs the log at each commit, and its header
  when the log starts afresh. That the files themselves are there after a power cut takes a sync of
  their directory, which we do once they exist. We never open the database file on our own: closing
  it would drop the locks that SQLite holds on it. What a fork does to those locks: see `sqlite_fork`.
- The log is copied into the database by us and not by SQLite's automatic checkpoint. That one runs
  after the write lock has been let go; up to 3.51.2 a checkpoint that overlaps with another process's
  commit can, very rarely, damage the database (SQLite calls it the WAL-reset bug). Ours runs while
  we hold the write lock.
"""

import contextlib
import errno
import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

from brook.errors import (
    BodyTooLarge,
    BrookError,
    Closed,
    DatabaseFull,
    DatabaseLocked,
    DatabaseReadOnly,
    MissingDirectory,
    NoQueue,
    NotADatabase,
    SchemaTooNew,
    StoreFailed,
)
from brook.model import Durability
from brook.sql import sqlite as sql
from brook.sql.statements import SCHEMA_VERSION, SET_SCHEMA_VERSION
from brook.stores import sqlite_fork
from brook.stores.session import SMALL, Result, Session
from brook.stores.sqlite_session import Ends, SqliteSession

# Between two looks at a lock that others have. The same for all, so that all have the same chance.
PAUSE = 0.00005

# The log is copied once about so much has been written to it, or after so many commits. Small enough to stay in memory;
# and where commits are small the log stays short, because the first time that it grows to a length, each sync takes
# up to twice as long as when what is there already is overwritten.
LOG_BYTES, LOG_COMMITS = 8 * 1024 * 1024, 128

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)

# What SQLite says (the lower byte of its code), whose error that is, and the remedy.
_MEANINGS: dict[int, tuple[type[BrookError], str]] = {
    **dict.fromkeys(_BUSY, (DatabaseLocked, "end the transaction that holds it, or wait longer (patience=...)")),
    sqlite3.SQLITE_FULL: (DatabaseFull, "free space on its disk and send again"),
    sqlite3.SQLITE_READONLY: (DatabaseReadOnly, "allow writing to the file and to its directory"),
    sqlite3.SQLITE_CANTOPEN: (DatabaseReadOnly, "allow writing to the file and to its directory"),
    sqlite3.SQLITE_NOTADB: (NotADatabase, "name another file"),
    sqlite3.SQLITE_CORRUPT: (NotADatabase, "restore it from a backup"),
    sqlite3.SQLITE_TOOBIG: (BodyTooLarge, "send fewer bytes in one run"),
}

_SYSTEM_CODES = {
    errno.EAGAIN: sqlite3.SQLITE_BUSY,
    errno.EROFS: sqlite3.SQLITE_READONLY,
    errno.EACCES: sqlite3.SQLITE_READONLY,
    errno.ENOSPC: sqlite3.SQLITE_FULL,
}


class SqliteDatabase:
    def __init__(self, path: Path, *, durability: Durability, patience: float, create: bool) -> None:
        self.path = path
        self._translated = _Translated(path)
        self._patience = patience
        self._write_lock = threading.Lock()
        self._read_lock = threading.Lock()
        self._logged = 0
        self._told: Ends | None = None
        self._pid: int | None = os.getpid()
        self._opened = contextlib.ExitStack()  # what is to be closed
        sqlite_fork.register(self)
        try:
            self._require_place(create)
            with self.translated():
                self._open_all(durability)
        except BaseException:
            self._opened.close()
            raise
        finally:
            self.go_on()

    def _open_all(self, durability: Durability) -> None:
        self._writer = self._opened.enter_context(contextlib.closing(self._connect()))
        self._patiently(_migrate, self._writer, self.path)
        self._reader = self._opened.enter_context(contextlib.closing(self._connect()))
        self._reader.execute(SCHEMA_VERSION).fetchall()  # from here on the log is there
        _sync_directory(self.path.parent)
        for connection in (self._writer, self._reader):
            connection.execute(f"PRAGMA synchronous = {durability}")
        # SQLite waits by sleeping up to 100 ms at a time: writers wait in _begin instead.
        self._writer.execute("PRAGMA busy_timeout = 0")
        self._door = self._opened.enter_context(self.path.with_name(f"{self.path.name}-door").open("w"))

    def write(self, work: Callable[[SqliteSession], Result], size: int = SMALL) -> Result:
        with self.translated(), self._write_lock:
            self.check_open()
            try:
                self._begin()
                session, self._told = SqliteSession(self._writer, self._told), None
                result = work(session)
                self._writer.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise
            self._told = session.to_tell
            self._logged += max(size, LOG_BYTES // LOG_COMMITS)
            if self._logged > LOG_BYTES:
                self._copy_log()
            return result

    def read(self, work: Callable[[Session], Result]) -> Result:
        with self.translated(), self._read_lock:
            self.check_open()
            return work(SqliteSession(self._reader))

    def close(self) -> None:
        with self._write_lock, self._read_lock:
            if self._pid == os.getpid():
                self._pid = None
                self._opened.close()

    def pause(self) -> None:
        self._write_lock.acquire()
        try:
            self._read_lock.acquire()
        except BaseException:
            self._write_lock.release()
            raise

    def go_on(self) -> None:
        self._read_lock.release()
        self._write_lock.release()

    def abandon(self) -> None:
        self._opened.close()

    def _require_place(self, create: bool) -> None:
        if not create:
            self._require_queue()
        if not self.path.parent.is_dir():
            where = self.path.parent
            raise MissingDirectory(f"{where}: no such directory, so no database {self.path.name} in it: create it")

    def _require_queue(self) -> None:
        """Without a change to a file that may be somebody else's."""
        if self.path.exists():
            with self.translated(), contextlib.closing(self._open()) as connection:
                if schema_version(connection):
                    return
        raise NoQueue(
            f"there is no queue in {self.path}: give the URL of a queue that exists",
            f"SQLite {sqlite3.sqlite_version}",
        )

    def _open(self) -> sqlite3.Connection:
        # A reader can find the database locked for a moment too, while a log is being recovered.
        return sqlite3.connect(self.path, timeout=self._patience, isolation_level=None, check_same_thread=False)

    def _connect(self) -> sqlite3.Connection:
        connection = self._open()
        self._patiently(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchall())
        connection.execute("PRAGMA synchronous = full")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        return connection

    def _begin(self) -> None:
        try:
            self._patiently(fcntl.flock, self._door, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._patiently(self._writer.execute, "BEGIN IMMEDIATE")
        finally:
            fcntl.flock(self._door, fcntl.LOCK_UN)

    def _roll_back(self) -> None:
        """What has begun, if it has: a signal's handler may raise just before we know, or just after."""
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")

    def _patiently(self, attempt: Callable[..., object], *arguments: object) -> None:
        """Try until nobody has it locked, or patience is at its end."""
        end = None
        while True:
            try:
                attempt(*arguments)
                return
            except (sqlite3.OperationalError, BlockingIOError) as error:
                end = end or time.monotonic() + self._patience
                if not _is_busy(error) or time.monotonic() > end:
                    raise
            time.sleep(PAUSE)

    def _copy_log(self) -> None:
        # What was committed is safe in the log: if this fails now, it is tried again after the next commit.
        with contextlib.suppress(sqlite3.Error), self._read_lock:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                self._reader.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                self._logged = 0
            finally:
                self._roll_back()

    def check_open(self) -> None:
        """Closed, unless it is open and this process's."""
        if self._pid != os.getpid():
            raise Closed(f"{self.path}: closed, or opened before a fork: open it again in this process")

    def translated(self) -> "_Translated":
        """What the database and the system raise comes out as ours."""
        return self._translated


class _Translated:
    """A class, because each send goes through it: a generator takes several times as long."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, sqlite3.Error | OSError):
            ours, remedy = _MEANINGS.get(_code(error), (StoreFailed, "see what the system says of its disk"))
            raise ours(f"{self._path}: {error}: {remedy}") from error


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the schema to the version of this Brook."""
    newest = len(sql.MIGRATIONS)
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = schema_version(connection)
        if version > newest:
            raise SchemaTooNew(
                f"{path}: has schema version {version}, this Brook knows up to {newest}: use a newer Brook"
            )
        for statement in (each for migration in sql.MIGRATIONS[version:] for each in migration):
            connection.execute(statement)
        if version < newest:
            connection.execute(SET_SCHEMA_VERSION, (newest,))
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def schema_version(connection: sqlite3.Connection) -> int:
    if not connection.execute(sql.HAS_SCHEMA).fetchone()[0]:
        return 0
    return int(connection.execute(SCHEMA_VERSION).fetchone()[0])


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _is_busy(error: Exception) -> bool:
    return _code(error) in _BUSY


def _code(error: Exception) -> int:
    """Of SQLite, also for what the system says of the door."""
    if isinstance(error, OSError):
        return _SYSTEM_CODES.get(error.errno or 0, 0)
    return getattr(error, "sqlite_errorcode", 0) & 0xFF

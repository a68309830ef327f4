"""Servers of MariaDB or MySQL: connections, transactions that are tried again, and hosts that stand in for each other.

1. Each thread that is at work has a connection; afterwards it lies ready for the next.
2. A transaction that the server rolled back because of others (a deadlock; in a cluster also a conflict with another
   node, at any statement up to COMMIT) begins anew, for as long as patience lasts. So does one whose connection was
   lost before COMMIT was sent, with the next host that answers: it was rolled back.
3. If the connection is lost after COMMIT was sent nobody can tell whether it was done: StoreFailed.
4. In a cluster a select waits for what other nodes have committed before, so that a client which goes to another host
   finds there what it has done.
"""

import contextlib
import functools
import importlib
import math
import os
import select
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from brook.errors import (
    BadUrl,
    BrookError,
    Closed,
    MissingDriver,
    NoQueue,
    NotDurable,
    SchemaTooNew,
    StoreFailed,
    Unreachable,
)
from brook.model import Durability
from brook.sql import mysql as sql
from brook.sql.statements import SCHEMA_VERSION
from brook.stores.mysql_errors import CONFLICTS, LOST, code_of, not_let_in, translated
from brook.stores.mysql_session import MysqlSession, Outcome, for_driver
from brook.stores.session import SMALL, Result, Session

PAUSE = 0.01  # seconds before another attempt
LET_IN_WITHIN = 5.0  # seconds until a server that was reached has said who it is, and let us in
ANSWER_WITHIN = 30.0  # seconds, beyond what it may wait for a lock; else the connection counts as lost

_NEWDECIMAL = 246
_LEAST_PACKET = 1024  # of those that a server can be set to; until it has told
_LEVELS: dict[Durability, int] = {"full": 2, "normal": 1, "off": 0}
# What innodb_flush_log_at_trx_commit means; 1 and 2 survive a kill of the server, and 1 a power cut.
_KEPT: dict[int, Durability] = {0: "off", 1: "full", 2: "normal", 3: "full"}


class Target(NamedTuple):
    hosts: Sequence[tuple[str, int]]
    user: str
    password: str
    database: str
    redis: tuple[str, int] | None = None  # hands out places
    tls: Mapping[str, str] | None = None  # files: ca, cert, key, as far as they are named; None: no TLS is asked for

    def __str__(self) -> str:
        hosts = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts)
        return f"mysql://{hosts}/{self.database}"


class MysqlDatabase:
    def __init__(self, target: Target, *, durability: Durability, patience: float, create: bool) -> None:
        self.target = target
        self._patience = patience
        self._driver = _driver()
        self._tls = None if target.tls is None else _context(**target.tls)
        self._idle: list[Any] = []
        self._host = 0
        self.longest = _LEAST_PACKET
        self.clustered = False
        self._lock = threading.Lock()
        self._pid: int | None = os.getpid()
        with contextlib.ExitStack() as unless_opened:
            unless_opened.callback(self.close)
            self._migrate(self._examine(durability), create)
            self.queue = str(self.read(lambda db: db.rows(sql.QUEUE))[0][0])
            unless_opened.pop_all()

    def write(self, work: Callable[[Session], Result], size: int = SMALL) -> Result:
        return self.write_and_tell(work)[0]

    def write_and_tell(self, work: Callable[[Session], Result]) -> tuple[Result, list[Outcome]]:
        """As write; and what those statements did that travelled with the commit, from BEGIN to COMMIT if all did."""

        def attempt(connection: Any) -> tuple[Result, list[Outcome]]:
            with connection.cursor() as cursor:
                session = MysqlSession(cursor, self.longest, transaction=True, clustered=self.clustered)
                result = work(session)
                return result, self._commit(session)

        return self._patiently(attempt)

    def read(self, work: Callable[[Session], Result]) -> Result:
        def attempt(connection: Any) -> Result:
            with connection.cursor() as cursor:
                return work(MysqlSession(cursor, self.longest, transaction=False, clustered=self.clustered))

        return self._patiently(attempt)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
            if self._pid == os.getpid():
                self._pid = None
                for connection in idle:
                    _close(connection)

    def check_open(self) -> None:
        """Closed, unless it is open and this process's."""
        if self._pid != os.getpid():
            raise Closed(f"{self.target}: closed, or opened before a fork: open it again in this process")

    def _patiently(self, attempt: Callable[[Any], Result]) -> Result:
        end = time.monotonic() + self._patience
        while True:
            try:
                with self._connection() as connection:
                    return attempt(connection)
            except Unreachable:
                if time.monotonic() > end:
                    raise
            except self._driver.Error as error:
                if code_of(error) not in CONFLICTS | LOST or time.monotonic() > end:
                    raise translated(error, str(self.target)) from error
                if code_of(error) in LOST:
                    self._host = (self._host + 1) % len(self.target.hosts)
            time.sleep(PAUSE)

    def _commit(self, session: MysqlSession) -> list[Outcome]:
        try:
            return session.commit()
        except self._driver.Error as error:
            if code_of(error) not in LOST:
                raise
            raise StoreFailed(
                f"{self.target}: the connection was lost while committing: look whether it was done"
            ) from error

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Any]:
        self.check_open()
        connection = self._idle_connection() or self._connect()
        try:
            yield connection
        except BaseException as error:
            # After any other error nobody knows what the server is about to say.
            if isinstance(error, BrookError) or (_is_servers(error) and code_of(error) not in LOST):
                self._roll_back(connection)
            else:
                _close(connection)
            raise
        self._put_back(connection)

    def _idle_connection(self) -> Any:
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None or _is_quiet(connection):
                return connection
            _close(connection)

    def _roll_back(self, connection: Any) -> None:
        try:
            connection.rollback()
        except self._driver.Error:
            _close(connection)
        else:
            self._put_back(connection)

    def _put_back(self, connection: Any) -> None:
        with self._lock:
            if self._pid is not None:
                self._idle.append(connection)
                return
        _close(connection)

    def _connect(self) -> Any:
        """To the host that answered last, or to the next that does."""
        for turn in range(len(self.target.hosts)):
            number = (self._host + turn) % len(self.target.hosts)
            try:
                connection = self._connect_to(*self.target.hosts[number])
            except self._driver.Error as error:
                failure = not_let_in(error, str(self.target))
                if not isinstance(failure, Unreachable):
                    raise failure from error
            else:
                self._host = number
                return connection
        raise failure

    def _connect_to(self, host: str, port: int) -> Any:
        connection = self._driver.connect(
            host=host,
            port=port,
            user=self.target.user,
            password=self.target.password,
            database=self.target.database,
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=max(math.ceil(self._patience), 1),
            read_timeout=LET_IN_WITHIN,
            write_timeout=self._patience + ANSWER_WITHIN,
            ssl=self._tls,
            client_flag=self._driver.constants.CLIENT.MULTI_STATEMENTS,
            # Sums come as decimals; ours are whole.
            conv={**self._driver.converters.conversions, _NEWDECIMAL: int},
        )
        connection._read_timeout = self._patience + ANSWER_WITHIN  # PyMySQL has one for all, and no way to change it
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql.ISOLATION)
                cursor.execute(for_driver(sql.MANNERS), (max(math.ceil(self._patience), 1),))
                if cursor.execute(sql.IS_CLUSTERED):
                    self.clustered = True
                    cursor.execute(sql.WAIT_FOR_OTHERS)
        except BaseException:
            _close(connection)
            raise
        return connection

    def _examine(self, wanted: Durability) -> str:
        """Whether the server is what we need; the collation that it knows."""
        self._put_back(self._connect())  # at once or not at all: a URL may be wrong
        ((self._version, self.longest, flushing, log_is_safe),) = self.read(lambda db: db.rows(sql.SERVER))
        kept = _KEPT[flushing] if log_is_safe else "normal"
        if _LEVELS[kept] < _LEVELS[wanted]:
            raise NotDurable(
                f"{self.target}: its innodb_flush_log_at_trx_commit={flushing} and sync_binlog keep what durability="
                f"{kept!r} promises, not {wanted!r}: set both to 1 on the server, or open with durability={kept!r}"
            )
        return sql.MARIADB_COLLATION if "MariaDB" in self._version else sql.MYSQL_COLLATION

    def _server(self) -> str:
        """'MariaDB 10.11.6' from '10.11.6-MariaDB-0+deb12u1'."""
        return f"{'MariaDB' if 'MariaDB' in self._version else 'MySQL'} {self._version.partition('-')[0]}"

    def _migrate(self, collation: str, create: bool) -> None:
        """Bring the schema to the version of this Brook."""
        version, newest = self.read(_schema_version), len(sql.MIGRATIONS)
        if not version and not create:
            why = f"{self.target}: there is no queue in this database: give the URL of a queue that exists"
            raise NoQueue(why, self._server())
        if version > newest:
            raise SchemaTooNew(
                f"{self.target}: has schema version {version}, this Brook knows up to {newest}: use a newer Brook"
            )
        for number, migration in enumerate(sql.MIGRATIONS[version:], version + 1):
            for statement in migration:
                self.read(functools.partial(_run, statement.format(collation=collation), ()))
            self.read(functools.partial(_run, sql.REACHED, (number,)))


def _schema_version(db: Session) -> int:
    rows = db.rows(SCHEMA_VERSION) if db.rows(sql.HAS_SCHEMA) else []
    return int(rows[0][0]) if rows else 0


def _run(statement: str, parameters: Sequence[object], db: Session) -> None:
    db.rows(statement, parameters)


def _context(ca: str | None = None, cert: str | None = None, key: str | None = None) -> ssl.SSLContext:
    """The server is signed by the authority in a file, or by one that the system trusts; we show a certificate."""
    try:
        context = ssl.create_default_context(cafile=ca)
        if cert is not None:
            context.load_cert_chain(cert, key)
    except OSError as error:
        raise BadUrl(f"{ca}, {cert}, {key}: {error}: name files with certificates, and the key of yours") from error
    return context


def _driver() -> Any:
    try:
        return importlib.import_module("pymysql")
    except ImportError:
        raise MissingDriver("pymysql: not installed: pip install 'brook-queue[mysql]'") from None


def _is_servers(error: BaseException) -> bool:
    return 1000 <= code_of(error) < 2000


def _is_quiet(connection: Any) -> bool:
    """An idle connection has nothing to read, unless the server has closed it: better to know before COMMIT is sent."""
    poll = select.poll()
    poll.register(connection._sock, select.POLLIN)
    return not poll.poll(0)


def _close(connection: Any) -> None:
    with contextlib.suppress(Exception):
        connection.close()

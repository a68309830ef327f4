"""Sends in callers' transactions on MariaDB and MySQL: the inbox.

**The rule.** A caller's transaction takes no place. It writes what it sends to the inbox, and nothing else of ours, so
it holds no lock that anybody waits for. What has been committed there gets its offsets from whoever next sends,
receives or looks: in one short transaction of ours, under the lock of the topics, it is moved out of the inbox to the
end of its topic. So

1. one that commits late gets its place late, behind what others have sent meanwhile: no group can have passed it by;
2. one that is rolled back was never seen: no group waits for it;
3. however long one stays open, others send and receive as if it were not there.

No clock and no time-out has a part in this. What several transactions have committed between two looks is placed in the
order in which it was written; what one of them has written stays in order, and before what is sent after its commit.
"""

import contextlib
import functools
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from brook.errors import BadSetting, BrookError
from brook.packing import Run
from brook.sql import mysql as sql
from brook.sql import statements
from brook.stores import labels, writing
from brook.stores.base import Writer
from brook.stores.mysql_database import MysqlDatabase
from brook.stores.mysql_errors import code_of, translated
from brook.stores.mysql_session import for_driver, require_short
from brook.stores.places import to_place
from brook.stores.session import Database, Row, Session

# So many are moved in one transaction.
MANY = 500

_NO_SUCH_SAVEPOINT = 1305
_ESCAPED = b"\0\n\r\x1a\"'\\"  # each has a backslash before it in a statement


def admit(database: Database) -> None:
    """Give offsets to all that is committed and has none yet."""
    while topics := {topic for (topic,) in database.read(lambda db: db.rows(sql.WAITING, (MANY,)))}:
        database.write(functools.partial(_admit, topics))


def place_all(db: Session, nexts: dict[int, int]) -> None:
    """Give offsets to all that is committed for these topics, whose locks we have; moves the next offsets."""
    while waiting := db.rows(sql.inbox_of(nexts), (MANY,)):
        _place(db, nexts, waiting)


def _admit(topics: Collection[int], db: Session) -> None:
    nexts = {topic: following for topic, following, *_ in db.rows(sql.lock_offsets(topics))}
    # Now that nobody else can move it, what is still there is ours to move.
    _place(db, nexts, db.rows(sql.inbox_of(topics), (MANY,)))
    writing.move_offsets(db, nexts)


def _place(db: Session, nexts: dict[int, int], runs: Sequence[Row]) -> None:
    firsts = writing.hand_out(nexts, [(topic, count) for _, topic, count, *_ in runs])
    for first, (each, topic, count, sent, size, sender, extras) in zip(firsts, runs, strict=True):
        place = to_place(topic, first)
        db.change(sql.ADMIT_BODY, (place, each))
        db.change(statements.ADD_RUN, (place, count, sent, place, size, sender, None, None, None))
        labels.add(db, [(place, extras)] if extras else [])
        db.change(sql.DROP_FROM_INBOX, (each,))


class CallersTransaction:
    """Works with whichever driver the caller has: its parameters are %s."""

    def __init__(self, database: MysqlDatabase, ours: Writer, connection: Any) -> None:
        if not callable(getattr(connection, "cursor", None)):
            raise BadSetting(f"{connection!r}: not a connection to MariaDB: give the one that has your transaction")
        self._database = database
        self._ours = ours
        self._connection = connection
        self._where = str(database.target)
        self._require_same_queue(database.queue)

    def topics(self) -> dict[str, int]:
        return self._ours.topics()

    def create_topics(self, names: Collection[str]) -> None:
        """At once, and to stay: nobody may have to wait for the caller's transaction to use them."""
        self._ours.create_topics(names)

    def append(self, runs: Sequence[Run], now: float) -> None:
        topics = {run.topic for run in runs}
        self._database.read(lambda db: writing.require_writable(db, db.rows(statements.next_offsets(topics)), topics))
        with self._savepoint() as cursor:
            for run in runs:
                sizes = None if run.sizes is None else bytes(run.sizes)
                row = (run.topic, run.messages, int(now * 1000), bytes(run.data), sizes, run.extras, run.sender)
                require_short(len(sql.ADD_TO_INBOX) + sum(map(_length, row)), self._database.longest)
                cursor.execute(for_driver(sql.ADD_TO_INBOX), row)

    @contextlib.contextmanager
    def _savepoint(self) -> Iterator[Any]:
        """What fails halfway leaves nothing, even if the caller commits."""
        with self._cursor() as cursor:
            cursor.execute("SAVEPOINT brook")
            self._require_transaction(cursor)
            try:
                yield cursor
            except BaseException:
                with contextlib.suppress(Exception):  # it may be gone with the connection, or with the transaction
                    cursor.execute("ROLLBACK TO SAVEPOINT brook")
                    cursor.execute("RELEASE SAVEPOINT brook")
                raise
            cursor.execute("RELEASE SAVEPOINT brook")

    def _require_transaction(self, cursor: Any) -> None:
        """Outside of a transaction there are no savepoints, and each statement is committed on its own."""
        try:
            cursor.execute("ROLLBACK TO SAVEPOINT brook")
        except Exception as error:
            if code_of(error) != _NO_SUCH_SAVEPOINT:
                raise
            raise BadSetting(
                f"{self._connection!r}: commits each statement on its own: BEGIN a transaction first"
            ) from None

    def _require_same_queue(self, queue: str) -> None:
        with self._cursor() as cursor:
            try:
                cursor.execute("SELECT 1 FROM brook_schema WHERE queue = %s", (queue,))
                found = cursor.fetchall()
            except Exception as error:
                raise BadSetting(
                    f"{error}: your transaction is in another database than the queue {self._where}"
                ) from None
            if not found:
                raise BadSetting(f"your transaction is in another database than the queue {self._where}")

    @contextlib.contextmanager
    def _cursor(self) -> Iterator[Any]:
        """What the caller's driver raises comes out as ours."""
        cursor = self._connection.cursor()
        try:
            yield cursor
        except BrookError:
            raise
        except Exception as error:
            raise translated(error, self._where) from error
        finally:
            cursor.close()


def _length(value: object) -> int:
    """In a statement, in bytes: as any driver writes it."""
    data = value if isinstance(value, bytes) else str(value).encode()
    return len("_binary'',") + len(data) + sum(map(data.count, _ESCAPED))

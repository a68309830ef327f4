"""Sends in the caller's own transaction on SQLite: with its rows or not at all, never skipped, never in the way."""

import importlib
import random
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from brook import (
    BadSetting,
    BodyTooLarge,
    Brook,
    DatabaseFull,
    DatabaseLocked,
    Forbidden,
    Message,
    Outgoing,
    UnknownTopic,
)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Of SQLite; on MariaDB: see test_mysql_transaction."""
    return f"sqlite:///{tmp_path}/q.db"


@pytest.fixture
def db(mq: Brook, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "q.db", timeout=0)) as connection:
        connection.execute("CREATE TABLE invoice (n INTEGER)")
        yield connection


def invoices(db: sqlite3.Connection) -> list[int]:
    return [n for (n,) in db.execute("SELECT n FROM invoice ORDER BY n")]


def test_committed_with_the_callers_rows(mq: Brook, db: sqlite3.Connection) -> None:
    mq.subscribe("g")
    db.execute("INSERT INTO invoice VALUES (1)")
    assert mq.within(db).send("orders", b"paid", key="k", tags=["t"], properties={"p": "q"}) == ("orders", 0)
    assert mq.within(db).send_many([Outgoing("orders", b"1"), Outgoing("other", b"2")]) == [("orders", 1), ("other", 0)]
    assert mq.topics() == {}  # nobody sees anything yet, not even the new topics
    db.commit()
    batch = mq.receive("g")
    assert sorted(batch.bodies) == [b"1", b"2", b"paid"]
    message = next(batch.messages)
    assert (message.key, message.tags, message.properties) == ("k", ("t",), {"p": "q"})
    assert invoices(db) == [1]


def test_rolled_back_with_the_callers_rows(mq: Brook, db: sqlite3.Connection) -> None:
    mq.subscribe("g")
    db.execute("INSERT INTO invoice VALUES (1)")
    mq.within(db).send("orders", b"paid")
    db.rollback()
    assert (mq.topics(), mq.lag("g"), invoices(db)) == ({}, 0, [])
    assert mq.send("orders", b"real").offset == 0
    assert mq.receive("g").bodies == [b"real"]


def test_rolled_back_to_a_savepoint_of_the_callers(mq: Brook, db: sqlite3.Connection) -> None:
    """The topics that came with it are gone too, and others get their ids."""
    transaction = mq.within(db)
    db.execute("BEGIN")
    db.execute("SAVEPOINT theirs")
    transaction.send("orders", b"undone")
    db.execute("ROLLBACK TO theirs")
    transaction.send("audit", b"an audit line")
    assert transaction.send("orders", b"an order") == ("orders", 0)
    db.commit()
    assert {topic: [message.body for message in mq.tail(topic)] for topic in mq.topics()} == {
        "audit": [b"an audit line"],
        "orders": [b"an order"],
    }


def test_the_send_alone_begins_a_transaction(mq: Brook, db: sqlite3.Connection) -> None:
    mq.within(db).send("orders", b"x")
    assert db.in_transaction
    db.rollback()
    assert mq.topics() == {}


@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_held_open_longer_than_any_time_out(mq: Brook, db: sqlite3.Connection, url: str, clock: Any, ends: str) -> None:
    """It takes its place, and then stays open past every lease, delay, time-out and patience there is."""
    with Brook(url, clock=clock, patience=0.01) as other:
        mq.send("orders", b"before")
        other.subscribe("g")
        early = other.receive("g")
        assert mq.within(db).send("orders", b"held").offset == 1
        for patience in (60, 1800, 3600, 86400 * 365):  # lease, time-out of a handler, ladder, and a year
            clock.now += patience
            with pytest.raises(DatabaseLocked):  # nobody gets a place behind it
                other.send("orders", b"impatient")
            with pytest.raises(DatabaseLocked):  # nor moves a group
                other.receive("g")
            assert other.lag("g") == 1
        getattr(db, ends)()
        other.ack(early)
        assert other.send("orders", b"after").offset == (2 if ends == "commit" else 1)
        assert other.receive("g").bodies == ([b"held", b"after"] if ends == "commit" else [b"after"])
        assert mq.lag("g") == (2 if ends == "commit" else 1)


def test_many_transactions_and_consumers_at_once(url: str, tmp_path: Path) -> None:
    """Whatever commits, in whichever order, comes once to the group, in dense offsets; what does not, never."""
    committed, got, lock = set[bytes](), list[tuple[int, bytes]](), threading.Lock()
    with Brook(url, durability="off", patience=60) as mq:
        mq.create_topics(["t"])

        @mq.consumer("t", group="g", threads=2, batch=3)
        def note(messages: list[Message]) -> None:
            with lock:
                got.extend((message.offset, message.body) for message in messages)

        def work(worker: int) -> None:
            chance = random.Random(worker)
            with closing(sqlite3.connect(tmp_path / "q.db", timeout=60)) as own:
                for n in range(30):
                    bodies = [b"%d/%d/%d" % (worker, n, k) for k in range(chance.randrange(1, 4))]
                    mq.within(own).send_many(Outgoing("t", body) for body in bodies)
                    if chance.random() < 0.3:
                        own.rollback()
                    else:
                        own.commit()
                        committed.update(bodies)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        while mq.lag("g"):
            threading.Event().wait(0.002)
    assert sorted(offset for offset, _ in got) == list(range(len(committed)))
    assert {body for _, body in got} == committed


def test_a_refused_send_leaves_the_callers_transaction_whole(mq: Brook, db: sqlite3.Connection) -> None:
    mq.create_topics(["open", "shut"])
    mq.set_rule("shut", "closed")
    db.execute("INSERT INTO invoice VALUES (1)")
    with pytest.raises(Forbidden):
        mq.within(db).send_many([Outgoing("open", b"x"), Outgoing("shut", b"x")])
    with pytest.raises(BodyTooLarge):
        mq.within(db).send("open", bytes(5_000_000))
    db.commit()
    assert (invoices(db), mq.tail("open")) == ([1], [])


def test_no_room_for_it(mq: Brook, db: sqlite3.Connection) -> None:
    mq.create_topics(["orders"])
    ((pages,),) = db.execute("PRAGMA page_count").fetchall()
    db.execute(f"PRAGMA max_page_count = {pages + 10}").fetchall()
    db.execute("INSERT INTO invoice VALUES (1)")
    with pytest.raises(DatabaseFull, match="free space"):
        mq.within(db).send("orders", bytes(1_000_000))
    db.rollback()
    assert mq.within(db).send("orders", b"x") == ("orders", 0)


def test_without_auto_create(mq: Brook, url: str, db: sqlite3.Connection) -> None:
    with Brook(url, auto_create=False) as strict:
        with pytest.raises(UnknownTopic):
            strict.within(db).send("nowhere", b"x")
        db.rollback()  # the look for the topic has begun a transaction


def test_callers_who_like_other_rows(mq: Brook, db: sqlite3.Connection) -> None:
    db.row_factory = lambda cursor, row: {
        column[0]: value for column, value in zip(cursor.description, row, strict=True)
    }
    mq.within(db).send("orders", b"x")
    db.commit()
    assert [message.body for message in mq.tail("orders")] == [b"x"]


def test_a_transaction_that_has_read_too_early(mq: Brook, db: sqlite3.Connection) -> None:
    db.execute("BEGIN")
    assert invoices(db) == []
    mq.send("orders", b"meanwhile")
    with pytest.raises(DatabaseLocked, match="begin it with BEGIN IMMEDIATE, or try it again"):
        mq.within(db).send("orders", b"x")
    db.rollback()
    assert mq.within(db).send("orders", b"x").offset == 1


def test_wrong_connections(mq: Brook, tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="not a connection to SQLite"):
        mq.within("orders.db")
    with closing(sqlite3.connect(tmp_path / "else.db")) as other, pytest.raises(BadSetting, match="another database"):
        mq.within(other)
    with (
        closing(sqlite3.connect(":memory:")) as other,
        pytest.raises(BadSetting, match="memory: your transaction"),
    ):
        mq.within(other)
    with closing(sqlite3.connect(tmp_path / "q.db", isolation_level=None)) as each_alone:
        with pytest.raises(BadSetting, match="BEGIN a transaction first"):
            mq.within(each_alone).send("orders", b"x")
        each_alone.execute("BEGIN")
        mq.within(each_alone).send("orders", b"x")
        each_alone.execute("COMMIT")
    assert len(mq.tail("orders")) == 1


def test_sqlalchemy(mq: Brook, tmp_path: Path, db: sqlite3.Connection) -> None:
    alchemy = pytest.importorskip("sqlalchemy")
    orm = pytest.importorskip("sqlalchemy.orm")
    engine = alchemy.create_engine(f"sqlite:///{tmp_path}/q.db")
    for ends in ("rollback", "commit"):
        with orm.Session(engine) as session:
            session.execute(alchemy.text("INSERT INTO invoice VALUES (1)"))
            mq.within(session).send("orders", ends.encode())
            getattr(session, ends)()
        with engine.connect() as connection:
            mq.within(connection).send("orders", ends.encode())
            getattr(connection, ends)()
    engine.dispose()
    assert invoices(db) == [1]
    assert [(message.offset, message.body) for message in mq.tail("orders")] == [(0, b"commit"), (1, b"commit")]


def test_django(mq: Brook, tmp_path: Path, db: sqlite3.Connection) -> None:
    django, conf = pytest.importorskip("django"), pytest.importorskip("django.conf")
    own = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "q.db")}
    conf.settings.configure(DATABASES={"default": own})
    django.setup()
    connection, transaction = importlib.import_module("django.db").connection, django.db.transaction
    with pytest.raises(BadSetting, match=r"use transaction.atomic\(\)"):
        mq.within(connection)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        connection.cursor().execute("INSERT INTO invoice VALUES (1)")
        mq.within(connection).send("orders", b"lost")
        raise ZeroDivisionError
    with transaction.atomic():
        connection.cursor().execute("INSERT INTO invoice VALUES (2)")
        mq.within(connection).send("orders", b"kept")
    connection.close()
    assert invoices(db) == [2]
    assert [(message.offset, message.body) for message in mq.tail("orders")] == [(0, b"kept")]


class Pooled:
    """What SQLAlchemy's Connection.connection is."""

    def __init__(self, dbapi_connection: sqlite3.Connection) -> None:
        self.dbapi_connection = dbapi_connection


class LikeConnection:
    def __init__(self, dbapi_connection: sqlite3.Connection) -> None:
        self.connection = Pooled(dbapi_connection)
        self.begun = False

    def in_transaction(self) -> bool:
        return self.begun

    def begin(self) -> None:
        self.begun = True


class LikeSession:
    def __init__(self, dbapi_connection: sqlite3.Connection) -> None:
        self._connection = LikeConnection(dbapi_connection)

    def connection(self) -> LikeConnection:
        return self._connection


class LikeDjango:
    in_atomic_block = True

    def __init__(self, dbapi_connection: sqlite3.Connection) -> None:
        self._later = dbapi_connection
        self.connection: sqlite3.Connection | None = None

    def ensure_connection(self) -> None:
        self.connection = self._later


@pytest.mark.parametrize("wrapper", [LikeConnection, LikeSession, LikeDjango])
def test_wrapped_connections(mq: Brook, db: sqlite3.Connection, wrapper: Any) -> None:
    mq.within(wrapper(db)).send("orders", b"x")
    db.commit()
    assert len(mq.tail("orders")) == 1

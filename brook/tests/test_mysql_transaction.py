"""Sends in the caller's own transaction on MariaDB: with its rows or not at all, never skipped, never in the way."""

import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pymysql
import pytest
from servers import HOST, MariaDb

from brook import BadSetting, BodyTooLarge, Brook, DatabaseLocked, Forbidden, Message, Outgoing, UnknownTopic

pytestmark = pytest.mark.real


@pytest.fixture
def database(maria: MariaDb) -> str:
    return maria.new_database()


@pytest.fixture
def url(maria: MariaDb, database: str) -> str:
    return maria.url(database)


@pytest.fixture
def db(mq: Brook, maria: MariaDb, database: str) -> Iterator[Any]:
    with closing(maria.connect(database)) as connection:
        connection.cursor().execute("CREATE TABLE invoice (n INT)")
        yield connection


def invoices(maria: MariaDb, database: str) -> list[int]:
    return [n for (n,) in maria.ask(f"SELECT n FROM {database}.invoice ORDER BY n")]


def bodies(mq: Brook, topic: str = "orders") -> list[tuple[int, bytes]]:
    return [(message.offset, message.body) for message in mq.tail(topic)]


def test_committed_with_the_callers_rows(mq: Brook, db: Any, maria: MariaDb, database: str) -> None:
    mq.subscribe("g")
    db.cursor().execute("INSERT INTO invoice VALUES (1)")
    assert mq.within(db).send("orders", b"paid", key="k", tags=["t"], properties={"p": "q"}) is None
    assert mq.within(db).send_many([Outgoing("orders", b"1"), Outgoing("other", b"2")]) is None
    assert mq.lag("g") == 0  # nobody sees anything yet
    db.commit()
    batch = mq.receive("g")
    assert sorted(batch.bodies) == [b"1", b"2", b"paid"]
    message = next(batch.messages)
    assert (message.offset, message.key, message.tags, message.properties) == (0, "k", ("t",), {"p": "q"})
    assert [found.body for found in mq.query("orders", key="k")] == [b"paid"]
    assert mq.trace("orders", 0).thread == threading.current_thread().name
    assert invoices(maria, database) == [1]


def test_rolled_back_with_the_callers_rows(mq: Brook, db: Any, maria: MariaDb, database: str) -> None:
    mq.subscribe("g")
    db.cursor().execute("INSERT INTO invoice VALUES (1)")
    mq.within(db).send("orders", b"paid")
    db.rollback()
    assert (mq.lag("g"), invoices(maria, database)) == (0, [])
    assert mq.send("orders", b"real").offset == 0
    assert mq.receive("g").bodies == [b"real"]


def test_what_is_sent_after_the_commit_is_behind(mq: Brook, db: Any) -> None:
    mq.within(db).send("orders", b"first")
    db.commit()
    assert mq.send("orders", b"second").offset == 1
    assert bodies(mq) == [(0, b"first"), (1, b"second")]


def test_what_is_committed_comes_while_there_is_plenty(mq: Brook, db: Any, clock: Any) -> None:
    mq.append(["busy"] * 30, [b"x"] * 30)
    mq.subscribe("g")
    mq.receive("g", max_messages=10)
    mq.within(db).send("orders", b"paid")
    db.commit()
    clock.now += 2
    assert b"paid" in mq.receive("g", max_messages=10).bodies
    assert mq.lag("g") == 31


@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_held_open_longer_than_any_time_out(mq: Brook, db: Any, url: str, clock: Any, ends: str) -> None:
    """It sends, and then stays open past every lease, delay, time-out and patience there is; nobody notices."""
    with Brook(url, clock=clock, patience=0.01) as other:
        mq.send("orders", b"before")
        other.subscribe("g")
        mq.within(db).send("orders", b"held")
        mq.within(db).send("new", b"held")  # a topic of its own making holds nobody up either
        expected = [b"before"]
        for number, patience in enumerate((60, 1800, 3600, 86400 * 365)):  # lease, time-out, ladder, and a year
            clock.now += patience
            assert other.send("orders", b"%d" % number).offset == number + 1
            assert other.send("new", b"%d" % number).offset == number
            batch = other.receive("g", ["orders"])
            assert batch.bodies == [*expected, b"%d" % number]
            other.ack(batch)
            other.ack(other.receive("g", ["new"]))
            assert other.lag("g") == 0
            assert other.clean(keep_seconds=1e9) == {}
            expected = []
        getattr(db, ends)()
        assert other.send("orders", b"after").offset == (6 if ends == "commit" else 5)
        assert sorted(other.receive("g").bodies) == ([b"after", b"held", b"held"] if ends == "commit" else [b"after"])


def test_many_transactions_and_consumers_at_once(url: str, maria: MariaDb, database: str) -> None:
    """Whatever commits, in whichever order, comes once to the group, in dense offsets; what does not, never."""
    committed, got, lock = set[bytes](), list[tuple[int, bytes]](), threading.Lock()
    with Brook(url, patience=60) as mq:
        mq.create_topics(["t"])

        @mq.consumer("t", group="g", threads=2, batch=3)
        def note(messages: list[Message]) -> None:
            with lock:
                got.extend((message.offset, message.body) for message in messages)

        def work(worker: int) -> None:
            chance = random.Random(worker)
            with closing(maria.connect(database)) as first, closing(maria.connect(database)) as second:
                for n in range(20):
                    own = chance.choice([first, second])  # the other may be in the middle of a transaction
                    sent = [b"%d/%d/%d" % (worker, n, k) for k in range(chance.randrange(1, 4))]
                    mq.within(own).send_many(Outgoing("t", body) for body in sent)
                    pending.setdefault(id(own), []).extend(sent)
                    end = chance.choice(["commit", "commit", "rollback", "stay"])
                    if end == "stay":
                        continue
                    getattr(own, end)()
                    done = pending.pop(id(own))
                    if end == "commit":
                        committed.update(done)
                    mq.send("t", b"%d/%d/plain" % (worker, n))
                    committed.add(b"%d/%d/plain" % (worker, n))

        pending: dict[int, list[bytes]] = {}
        threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        while mq.lag("g"):
            threading.Event().wait(0.002)
    assert sorted(offset for offset, _ in got) == list(range(len(committed)))
    assert {body for _, body in got} == committed


def test_a_refused_send_leaves_the_callers_transaction_whole(mq: Brook, db: Any, maria: MariaDb, database: str) -> None:
    mq.create_topics(["open", "shut"])
    mq.set_rule("shut", "closed")
    db.cursor().execute("INSERT INTO invoice VALUES (1)")
    with pytest.raises(Forbidden):
        mq.within(db).send_many([Outgoing("open", b"x"), Outgoing("shut", b"x")])
    with pytest.raises(BodyTooLarge):
        mq.within(db).send("open", bytes(5_000_000))
    db.commit()
    assert (invoices(maria, database), bodies(mq, "open")) == ([1], [])


def test_half_a_send_leaves_nothing(mq: Brook, db: Any) -> None:
    """The second of two runs fails on the server."""
    mq.create_topics(["a", "b"])
    db.cursor().execute("ALTER TABLE brook_inbox ADD CONSTRAINT odd CHECK (topic < 2)")
    with pytest.raises(Exception, match="odd"):
        mq.within(db).send_many([Outgoing("a", b"x"), Outgoing("b", b"x")])
    db.commit()
    assert bodies(mq, "a") == []


@pytest.mark.parametrize("body", [b"\0" * 9_000_000, b"x" * 17_000_000], ids=["escaped", "plain"])
def test_too_large_for_the_server(url: str, db: Any, maria: MariaDb, database: str, body: bytes) -> None:
    """The server would end the caller's connection."""
    with Brook(url, max_body=10**9) as mq:
        db.cursor().execute("INSERT INTO invoice VALUES (1)")
        with pytest.raises(BodyTooLarge, match="max_allowed_packet"):
            mq.within(db).send("orders", body)
        db.commit()
    assert invoices(maria, database) == [1]


class Deadlocked(pymysql.cursors.Cursor):
    """As if the server had rolled back the transaction because of others."""

    def execute(self, query: str, args: Any = None) -> int:
        if "brook_inbox" in query:
            self.connection.rollback()
            raise pymysql.err.OperationalError(1213, "planted")
        return super().execute(query, args)


def test_rolled_back_by_the_server(mq: Brook, db: Any) -> None:
    db.cursorclass = Deadlocked
    with pytest.raises(DatabaseLocked, match="planted"):
        mq.within(db).send("orders", b"x")
    db.cursorclass = pymysql.cursors.Cursor
    mq.within(db).send("orders", b"again")
    db.commit()
    assert bodies(mq) == [(0, b"again")]


def test_without_auto_create(mq: Brook, url: str, db: Any) -> None:
    with Brook(url, auto_create=False) as strict, pytest.raises(UnknownTopic):
        strict.within(db).send("nowhere", b"x")


def test_callers_who_like_other_rows(mq: Brook, maria: MariaDb, database: str) -> None:
    with closing(maria.connect(database, cursorclass=pymysql.cursors.DictCursor)) as own:
        mq.within(own).send("orders", b"x")
        own.commit()
    assert bodies(mq) == [(0, b"x")]


def test_wrong_connections(mq: Brook, maria: MariaDb, database: str) -> None:
    with pytest.raises(BadSetting, match="not a connection to MariaDB"):
        mq.within("orders.db")
    other = maria.new_database()
    with closing(maria.connect(other)) as elsewhere, pytest.raises(BadSetting, match="another database"):
        mq.within(elsewhere)
    Brook(maria.url(other)).close()
    with closing(maria.connect(other)) as elsewhere, pytest.raises(BadSetting, match="another database"):
        mq.within(elsewhere)
    with closing(maria.connect(database, autocommit=True)) as each_alone:
        with pytest.raises(BadSetting, match="BEGIN a transaction first"):
            mq.within(each_alone).send("orders", b"x")
        each_alone.begin()
        mq.within(each_alone).send("orders", b"x")
        each_alone.commit()
    assert bodies(mq) == [(0, b"x")]


def test_sqlalchemy(mq: Brook, db: Any, url: str, maria: MariaDb, database: str) -> None:
    alchemy = pytest.importorskip("sqlalchemy")
    orm = pytest.importorskip("sqlalchemy.orm")
    engine = alchemy.create_engine(url.replace("mysql://", "mysql+pymysql://"))
    for ends in ("rollback", "commit"):
        with orm.Session(engine) as session:
            session.execute(alchemy.text("INSERT INTO invoice VALUES (1)"))
            mq.within(session).send("orders", ends.encode())
            getattr(session, ends)()
        with engine.connect() as connection:
            mq.within(connection).send("orders", ends.encode())
            getattr(connection, ends)()
    engine.dispose()
    assert invoices(maria, database) == [1]
    assert bodies(mq) == [(0, b"commit"), (1, b"commit")]


DJANGO = """
import sys
import pymysql
pymysql.install_as_MySQLdb()
pymysql.version_info = sys.modules["MySQLdb"].version_info = (2, 2, 8, "final", 0)  # Django asks for mysqlclient's
from django.conf import settings
from brook import BadSetting, Brook
url, host, port, name = sys.argv[1:]
own = {"ENGINE": "django.db.backends.mysql", "HOST": host, "PORT": port, "NAME": name, "USER": "root"}
settings.configure(DATABASES={"default": own})
from django.db import connection, transaction
with Brook(url) as mq:
    try:
        mq.within(connection)
    except BadSetting as error:
        print(error)
    try:
        with transaction.atomic():
            connection.cursor().execute("INSERT INTO invoice VALUES (1)")
            mq.within(connection).send("orders", b"lost")
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    with transaction.atomic():
        connection.cursor().execute("INSERT INTO invoice VALUES (2)")
        mq.within(connection).send("orders", b"kept")
"""


def test_django(mq: Brook, db: Any, url: str, maria: MariaDb, database: str) -> None:
    """In a process of its own: Django is configured once in each."""
    command = [sys.executable, "-c", DJANGO, url, HOST, str(maria.port), database]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "use transaction.atomic()" in done.stdout, done.stderr
    assert invoices(maria, database) == [2]
    assert bodies(mq) == [(0, b"kept")]

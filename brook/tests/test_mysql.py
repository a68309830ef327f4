"""What is particular to MariaDB: URLs, servers and users that are not as they should be, conflicts, migrations."""

import socket
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pymysql
import pytest
from servers import HOST, MariaDb, free_ports

from brook import (
    AccessDenied,
    Alert,
    BadMessage,
    BadUrl,
    BodyTooLarge,
    Brook,
    DatabaseLocked,
    DatabaseReadOnly,
    MissingDatabase,
    MissingDriver,
    NoQueue,
    NotDurable,
    SchemaTooNew,
    StoreFailed,
    Unreachable,
)
from brook.sql import mysql as sql
from brook.sql import statements
from brook.sql.statements import OFFSET_BITS, RUNS_FROM
from brook.stores import mysql_database
from brook.stores.base import ListenerPlace
from brook.stores.mysql_database import Target
from brook.stores.mysql_session import MysqlSession, for_driver
from brook.urls import mysql_target

pytestmark = pytest.mark.real


@pytest.fixture
def database(maria: MariaDb) -> str:
    return maria.new_database()


@pytest.fixture
def url(maria: MariaDb, database: str) -> str:
    return maria.url(database)


@pytest.mark.parametrize("greeting", [b"", b"SSH-2.0-OpenSSH_9.2p1\r\n"])
def test_a_server_of_another_kind_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, greeting: bytes) -> None:
    monkeypatch.setattr(mysql_database, "LET_IN_WITHIN", 0.1)

    def greet() -> None:
        with listener.accept()[0] as guest:
            guest.sendall(greeting)
            guest.recv(1)  # until it leaves

    with socket.create_server((HOST, 0)) as listener:
        server = threading.Thread(target=greet)
        server.start()
        with pytest.raises(Unreachable, match="does not answer as MariaDB or MySQL do: see that it runs"):
            Brook(f"mysql://u@{HOST}:{listener.getsockname()[1]}/q")
        server.join()


def test_urls() -> None:
    assert mysql_target("mysql://u:p%40ss@h/q") == Target([("h", 3306)], "u", "p@ss", "q")
    assert mysql_target("mysql://u@h1:1,h2,h3:3/q") == Target([("h1", 1), ("h2", 3306), ("h3", 3)], "u", "", "q")
    assert mysql_target("mysql://u@h/q?redis=r:5") == Target([("h", 3306)], "u", "", "q", ("r", 5))
    secured = mysql_target("mysqls://u@h/q?redis=r&ca=/a.pem&cert=/c.pem")
    assert (secured.redis, secured.tls) == (("r", 6379), {"ca": "/a.pem", "cert": "/c.pem"})
    assert mysql_target("mysqls://u@h/q").tls == {}
    six = mysql_target("mysql://u:p@[::1]:33,[fe80::2]/q?redis=[::1]:5")
    assert (six.hosts, six.redis) == ([("::1", 33), ("fe80::2", 3306)], ("::1", 5))
    assert str(six) == "mysql://[::1]:33,[fe80::2]:3306/q"


@pytest.mark.parametrize(
    "url",
    ["mysql://h/q", "mysql://u:secret@h", "mysql://u:secret@h:x/q", "mysql://u@h/q?a=b", "mysql://u@h/q?ca=c",
     f"mysql://u:secret@{'h' * 64}.com/q",
     "mysql://u:secret@h:65536/q", "mysql://u:secret@[::1/q", "mysql://u:secret@h/q%00r", "mysql://u@h/q?redis=::1"],
)  # fmt: skip
def test_wrong_urls(url: str) -> None:
    with pytest.raises(BadUrl, match="write mysql://user:password@host") as caught:
        Brook(url)
    assert "secret" not in str(caught.value)


def test_missing_driver(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymysql", None)
    with pytest.raises(MissingDriver, match=r"pip install 'brook-queue\[mysql\]'"):
        Brook(url)


def test_nobody_there() -> None:
    with pytest.raises(Unreachable, match="see that it runs"):
        Brook(f"mysql://root@{HOST}:{free_ports(1)[0]}/q", patience=0)


def test_strangers(maria: MariaDb, database: str, url: str) -> None:
    with pytest.raises(AccessDenied, match="give the user and password"):
        Brook(url.replace("root@", "stranger:wrong@"))
    with pytest.raises(MissingDatabase, match="create it"):
        Brook(maria.url("nowhere"))
    maria.ask(f"GRANT SELECT ON {database}.* TO 'reader'@'%' IDENTIFIED BY 'r'")
    Brook(url).close()
    with Brook(url.replace("root@", "reader:r@")) as mq, pytest.raises(AccessDenied, match="command denied"):
        mq.create_topics(["t"])


def test_a_listener_that_may_only_read(
    maria: MariaDb, database: str, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It listens; that it is there it cannot tell, which is said once."""
    maria.ask(f"GRANT SELECT ON {database}.* TO 'listener'@'%' IDENTIFIED BY 'r'")
    with Brook(url) as mq:
        mq.send("t", b"x")
    with Brook(url.replace("root@", "listener:r@"), auto_create=False) as mq:
        listener = mq.listen("t", start="earliest")
        for _ in range(2):
            mq._upkeep.step()
        assert listener.receive().bodies == [b"x"]
    assert caplog.text.count("this client's listeners are not seen") == 1


def test_without_creating(url: str) -> None:
    with pytest.raises(NoQueue, match="there is no queue in this database") as caught:
        Brook(url, create=False)
    assert caught.value.server.startswith("MariaDB 1")
    Brook(url).close()
    Brook(url, create=False).close()


def test_what_cannot_be_opened_keeps_no_connection(url: str, maria: MariaDb, database: str) -> None:
    """Even if the error is kept."""
    with pytest.raises(NoQueue) as no_queue:
        Brook(url, create=False)
    Brook(url).close()
    maria.ask(f"DROP TABLE {database}.brook_setting")
    with pytest.raises(StoreFailed) as no_settings:
        Brook(url)
    assert no_queue and no_settings
    left = f"SELECT id FROM information_schema.processlist WHERE db = '{database}'"
    while maria.ask(left):  # the server takes a moment to see that they are closed
        threading.Event().wait(0.002)


def test_a_removed_queue_is_gone(url: str, maria: MariaDb, database: str) -> None:
    with closing(maria.connect(database)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE brookish (id INT)")
        with Brook(url) as mq:
            mq.send("a", b"one")
            mq.remove()
        cursor.execute("SHOW TABLES")
        assert cursor.fetchall() == (("brookish",),)
    with Brook(url) as mq:
        assert mq.topics() == {}


def test_tls_is_not_given_up(url: str, tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="write mysql:// instead of mysqls://"):
        Brook(url.replace("mysql://", "mysqls://"))
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(BadUrl, match="name files with certificates"):
        Brook(f"{url.replace('mysql://', 'mysqls://')}?ca={tmp_path / 'ca.pem'}")


def test_a_server_that_keeps_less_is_refused(maria: MariaDb, url: str) -> None:
    for level, kept in ((2, "normal"), (0, "off")):
        maria.ask(f"SET GLOBAL innodb_flush_log_at_trx_commit = {level}")
        try:
            with pytest.raises(NotDurable, match=f"open with durability='{kept}'"):
                Brook(url)
            Brook(url, durability=kept).close()  # type: ignore[arg-type]
        finally:
            maria.ask("SET GLOBAL innodb_flush_log_at_trx_commit = 1")


def test_read_only(maria: MariaDb, database: str, url: str) -> None:
    maria.ask(f"GRANT ALL ON {database}.* TO 'writer'@'%' IDENTIFIED BY 'w'")
    with Brook(url.replace("root@", "writer:w@")) as mq:
        mq.create_topics(["t"])
        maria.ask("SET GLOBAL read_only = 1")
        try:
            with pytest.raises(DatabaseReadOnly, match="name a server that can be written to"):
                mq.send("t", b"x")
        finally:
            maria.ask("SET GLOBAL read_only = 0")
        assert mq.send("t", b"x").offset == 0


def test_locked(maria: MariaDb, database: str, url: str) -> None:
    with Brook(url, patience=1) as mq, closing(maria.connect(database)) as other:
        mq.create_topics(["t", "u"])
        other.cursor().execute("SELECT * FROM brook_topic WHERE name = 't' FOR UPDATE")
        with pytest.raises(DatabaseLocked, match="end the transaction in the way"):
            mq.send("t", b"x")
        assert mq.send("u", b"x").offset == 0
        other.rollback()
        assert mq.send("t", b"x").offset == 0


def test_too_large_for_the_server(url: str) -> None:
    with Brook(url, max_body=10**9) as mq:
        with pytest.raises(BodyTooLarge, match="max_allowed_packet"):
            mq.send("t", bytes(9_000_000))
        assert mq.send("t", b"x").offset == 0
    with Brook(url) as mq, pytest.raises(BadMessage, match="may have 255 characters"):
        mq.send("t" * 256, b"x")


def test_many_large_bodies_are_one_transaction(url: str) -> None:
    """More than the server takes in one packet."""
    with Brook(url) as mq:
        assert mq.append(["t"] * 10, [bytes([n]) * 2_000_000 for n in range(10)]) == list(range(10))
        assert [message.body[:1] for message in mq.tail("t")] == [bytes([n]) for n in range(10)]


def test_names_are_told_apart(url: str) -> None:
    names = ["t", "T", "t ", "ẗ", "t\U0001f600"]
    with Brook(url) as mq:
        assert len(set(mq.create_topics(names))) == 5
        assert set(mq.topics()) == set(names)


def test_newer_schema(maria: MariaDb, database: str, url: str) -> None:
    Brook(url).close()
    maria.ask(f"UPDATE {database}.brook_schema SET version = 99")
    with pytest.raises(SchemaTooNew, match=f"version 99, this Brook knows up to {len(sql.MIGRATIONS)}"):
        Brook(url)


def test_a_migration_that_was_cut_short_is_done_again(
    maria: MariaDb, database: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each of its statements; messages stay."""
    later = (*sql.MIGRATIONS, ("CREATE TABLE IF NOT EXISTS brook_extra (x INT) ENGINE = InnoDB",))
    for end in range(len(sql.MIGRATIONS[0])):
        with monkeypatch.context() as patch:
            patch.setattr(sql, "MIGRATIONS", ((*sql.MIGRATIONS[0][:end], "nonsense"),))
            with pytest.raises(StoreFailed, match="nonsense"):
                Brook(url)
    with Brook(url) as mq:
        mq.send("t", b"x")
    monkeypatch.setattr(sql, "MIGRATIONS", later)
    for _ in range(2):  # the second time there is nothing to do
        with Brook(url) as mq:
            assert [message.body for message in mq.tail("t")] == [b"x"]
    assert maria.ask(f"SELECT version FROM {database}.brook_schema") == [(len(later),)]


def test_a_queue_of_the_first_version_goes_on(
    maria: MariaDb, database: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a message in flight and one that nobody has claimed; what came later works in it too."""
    with monkeypatch.context() as before:
        before.setattr(sql, "MIGRATIONS", sql.MIGRATIONS[:1])
        before.setattr(statements, "DROP_LISTENERS", "DELETE FROM brook_client WHERE client = ?")  # there were none
        with Brook(url) as old:
            old.append(["t"] * 2, [b"a", b"b"])
            old.subscribe("g")
            old.receive("g", max_messages=1)
    assert maria.ask(f"SELECT version FROM {database}.brook_schema") == [(1,)]
    with Brook(url) as mq:
        batch = mq.receive("g")
        assert (batch.bodies, batch.redelivered) == ([b"a", b"b"], [True, False])
        mq.ack(batch)
        alert = Alert("slow", "g", mq.client, "x", "slow", 1.0)
        mq._store.add_alert(alert)
        mq._store.tell_listeners(mq.client, [ListenerPlace(1, 1, 2)], 1.0)
        assert mq.alerts() == [alert]
        assert [state.lag for state in mq.listener_states()] == [0]
    assert maria.ask(f"SELECT version FROM {database}.brook_schema") == [(len(sql.MIGRATIONS),)]


def test_opened_by_many_at_once(url: str) -> None:
    opened = list[Brook]()
    threads = [threading.Thread(target=lambda: opened.append(Brook(url))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [mq.send("t", b"x").offset for mq in opened] == [0, 1, 2, 3]
    for mq in opened:
        mq.close()


def fails_once(at: Callable[[str], bool], code: int) -> Callable[[MysqlSession, str], None]:
    """In place of MysqlSession._execute: the first text that is meant fails, as if the server had said so."""
    real, left = MysqlSession._execute, [code]

    def execute(self: MysqlSession, text: str) -> None:
        if left and at(text):
            raise pymysql.err.OperationalError(left.pop(), "planted")
        real(self, text)

    return execute


@pytest.mark.parametrize("at", ["FOR UPDATE", "COMMIT"])
def test_conflicts_are_tried_again(url: str, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    with Brook(url) as mq:
        mq.create_topics(["t"])
        monkeypatch.setattr(MysqlSession, "_execute", fails_once(lambda text: at in text, 1213))
        assert mq.send("t", b"x").offset == 0
        assert [message.body for message in mq.tail("t")] == [b"x"]


def test_a_connection_lost_before_the_commit_is_no_loss(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Brook(url) as mq:
        mq.create_topics(["t"])
        monkeypatch.setattr(MysqlSession, "_execute", fails_once(lambda text: "FOR UPDATE" in text, 2013))
        assert mq.send("t", b"x").offset == 0


def test_a_connection_lost_while_committing_is_unknown(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Brook(url) as mq:
        mq.create_topics(["t"])
        monkeypatch.setattr(MysqlSession, "_execute", fails_once(lambda text: "COMMIT" in text, 2013))
        with pytest.raises(StoreFailed, match="look whether it was done"):
            mq.send("t", b"x")


def test_connections_that_the_server_has_closed(maria: MariaDb, database: str, url: str) -> None:
    with Brook(url) as mq:
        mq.send("t", b"x")
        for (number,) in maria.ask(f"SELECT id FROM information_schema.processlist WHERE db = '{database}'"):
            maria.ask(f"KILL {number}")
        assert mq.send("t", b"x").offset == 1


@pytest.mark.parametrize("tables", [["run"], ["body"], ["run", "body"]])
def test_truncated_messages_leave_groups_working(maria: MariaDb, database: str, url: str, tables: list[str]) -> None:
    with Brook(url) as mq:
        mq.append(["t"] * 10, [bytes(1000)] * 10)
        mq.subscribe("g")
        claimed = mq.receive("g", max_messages=4)
        for table in tables:
            maria.ask(f"TRUNCATE TABLE {database}.brook_{table}")
        mq.ack(claimed)
        assert mq.send("t", b"new").offset == 10
        assert mq.receive("g", max_messages=3).offsets == [10]


def plan(maria: MariaDb, database: str, statement: str, **parameters: int) -> list[Any]:
    with closing(maria.connect(database)) as db, db.cursor() as cursor:
        cursor.execute(f"EXPLAIN {for_driver(statement)}", parameters)
        return [(row[2], row[3]) for row in cursor.fetchall()]


def test_runs_are_found_by_their_places(maria: MariaDb, database: str, url: str) -> None:
    """And not by a look at all of them."""
    with Brook(url) as mq:
        for _ in range(300):
            mq.send("t", b"x")
    wanted = {"place": (1 << OFFSET_BITS) + 200, "count": 5, "attempts": 1, "runs": 99}
    assert ("r", "range") in plan(maria, database, RUNS_FROM, **wanted)
    assert ("r", "range") not in plan(maria, database, "SELECT 1 FROM brook_run r WHERE count = :count", **wanted)


@pytest.mark.parametrize(("key", "trips"), [(None, 1), ("k", 2)])
def test_a_small_send_is_one_round_trip(url: str, key: str | None, trips: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sent, execute = list[str](), MysqlSession._execute
    with Brook(url) as mq:
        mq.create_topics(["t"])
        monkeypatch.setattr(MysqlSession, "_execute", lambda db, text: (sent.append(text), execute(db, text)))
        mq.send("t", b"x", key=key)
        assert len(sent) == trips

"""What is particular to SQLite: files, locks, full disks, the log, migrations."""

import fcntl
import os
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from servers import wait_until

from brook import (
    Alert,
    BadUrl,
    Brook,
    DatabaseFull,
    DatabaseLocked,
    DatabaseReadOnly,
    Forbidden,
    MissingDirectory,
    NoQueue,
    NotADatabase,
    Run,
    SchemaTooNew,
    StoreFailed,
)
from brook.sql import sqlite as sql
from brook.sql.statements import OFFSET_BITS
from brook.stores import sqlite_database
from brook.stores.base import ListenerPlace
from brook.stores.sqlite import SqliteStore
from brook.urls import sqlite_path


@pytest.mark.parametrize(
    ("url", "path"),
    [("sqlite:///a/b.db", "a/b.db"), ("sqlite:////a/b.db", "/a/b.db"), ("sqlite:///a%20b.db", "a b.db")],
)
def test_urls(url: str, path: str) -> None:
    assert sqlite_path(url) == Path(path)


@pytest.mark.parametrize(
    "url",
    ["orders.db", "postgres://x/y", "sqlite://orders.db", "sqlite:///", "sqlite:///a/", "sqlite:///a?b=c",
     "sqlite:///:memory:", "sqlite://[/a.db", "sqlite:///a%00b.db", Path("orders.db"), None],
)  # fmt: skip
def test_wrong_urls(url: str) -> None:
    with pytest.raises(BadUrl) as caught:
        Brook(url)
    assert repr(url) in str(caught.value)


@pytest.mark.parametrize(
    "url", ["postgres://u:a secret@h/d", "sqlite://u:a secret@h/d", "x://u:a secret@[h", "x:a secret@h"]
)
def test_wrong_urls_are_shown_without_passwords(url: str) -> None:
    with pytest.raises(BadUrl) as caught:
        Brook(url)
    assert repr(url.replace("a secret", "...")) in str(caught.value)
    assert "a secret" not in str(caught.value)


def test_without_creating(tmp_path: Path) -> None:
    """Neither a file, nor a queue in somebody else's."""
    url = f"sqlite:///{tmp_path}/q.db"
    for _ in range(2):
        before = {path: path.read_bytes() for path in tmp_path.iterdir()}
        with pytest.raises(NoQueue, match=r"there is no queue in .*q\.db: give the URL") as caught:
            Brook(url, create=False)
        assert caught.value.server.startswith("SQLite 3")
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
        with closing(sqlite3.connect(tmp_path / "q.db")) as theirs:
            theirs.execute("CREATE TABLE IF NOT EXISTS invoice (n)")
    Brook(url).close()
    Brook(url, create=False).close()
    with pytest.raises(NoQueue):
        Brook(f"sqlite:///{tmp_path}/nowhere/q.db", create=False)


def test_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(MissingDirectory, match="no such directory"):
        Brook(f"sqlite:///{tmp_path}/nowhere/q.db")


def test_not_a_database(tmp_path: Path) -> None:
    (tmp_path / "q.db").write_bytes(b"something else" * 1000)
    with pytest.raises(NotADatabase, match="name another file"):
        Brook(f"sqlite:///{tmp_path}/q.db")


def test_locked(tmp_path: Path) -> None:
    with Brook(f"sqlite:///{tmp_path}/q.db", patience=0.05) as mq:
        mq.create_topics(["t"])
        with closing(sqlite3.connect(tmp_path / "q.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(DatabaseLocked, match="database is locked: end the transaction"):
                mq.send("t", b"x")
        assert mq.send("t", b"x").offset == 0


class Interrupted:
    """A connection; a signal's handler raises as soon as it has begun a transaction for the nth time."""

    def __init__(self, connection: sqlite3.Connection, nth: int) -> None:
        self._connection, self._left = connection, nth

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
        done = self._connection.execute(statement, *arguments)
        self._left -= statement == "BEGIN IMMEDIATE"
        if self._left == 0 and statement == "BEGIN IMMEDIATE":
            raise KeyboardInterrupt
        return done


@pytest.mark.parametrize("nth", [1, 2], ids=["before a change", "before the log is copied"])
def test_an_interrupt_leaves_nothing_locked(tmp_path: Path, nth: int) -> None:
    url = f"sqlite:///{tmp_path}/q.db"
    with Brook(url) as mq, Brook(url, patience=0.0) as other:
        mq.create_topics(["t"])
        database = mq._store._database  # type: ignore[attr-defined]
        database._logged = sqlite_database.LOG_BYTES  # the next commit is followed by a copy of the log
        database._writer = Interrupted(database._writer, nth)
        with pytest.raises(KeyboardInterrupt):
            mq.send("t", b"x")
        assert [queue.send("t", b"x").offset for queue in (other, mq)] == [nth - 1, nth]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], check=True)
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.real
def test_full_disk(small_disk: Path) -> None:
    with Brook(f"sqlite:///{small_disk}/q.db") as mq:
        mq.subscribe("g")
        sent = 0
        with pytest.raises(DatabaseFull, match="free space"):
            while True:
                sent = mq.append(["t"] * 100, [b"x" * 1000] * 100)[-1] + 1
        assert mq.lag("g") == sent > 0


@pytest.mark.real
def test_read_only_disk(small_disk: Path) -> None:
    with Brook(f"sqlite:///{small_disk}/q.db") as mq:
        mq.send("t", b"x")
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(DatabaseReadOnly, match="allow writing"):
        Brook(f"sqlite:///{small_disk}/q.db")


def test_newer_schema(tmp_path: Path) -> None:
    Brook(f"sqlite:///{tmp_path}/q.db").close()
    with closing(sqlite3.connect(tmp_path / "q.db")) as db, db:
        db.execute("UPDATE brook_schema SET version = 99")
    with pytest.raises(SchemaTooNew, match=f"version 99, this Brook knows up to {len(sql.MIGRATIONS)}"):
        Brook(f"sqlite:///{tmp_path}/q.db")


def test_migration_keeps_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/q.db"
    with Brook(url) as mq:
        mq.send("t", b"x")
    later = (*sql.MIGRATIONS, ("CREATE TABLE brook_extra (x)", "INSERT INTO brook_extra VALUES (1)"))
    monkeypatch.setattr(sql, "MIGRATIONS", later)
    for _ in range(2):  # the second time there is nothing to do
        with Brook(url) as mq:
            assert mq.topics() == {"t": 1}
    with closing(sqlite3.connect(tmp_path / "q.db")) as db:
        assert db.execute("SELECT version, (SELECT count(*) FROM brook_extra) FROM brook_schema").fetchall() == [
            (len(later), 1)
        ]


def test_a_queue_of_the_first_version_goes_on(tmp_path: Path) -> None:
    """With a message in flight and one that nobody has claimed."""
    place = 1 << OFFSET_BITS
    with closing(sqlite3.connect(tmp_path / "q.db", isolation_level=None)) as db:
        for statement in sql.MIGRATIONS[0]:
            db.execute(statement)
        db.execute("UPDATE brook_schema SET version = 1")
        db.execute("INSERT INTO brook_topic VALUES (1, 't', 2)")
        db.execute("INSERT INTO brook_body VALUES (7, CAST('ab' AS BLOB), NULL, NULL)")
        db.execute("INSERT INTO brook_run VALUES (?, 2, 1000, 7)", (place,))
        db.execute("INSERT INTO brook_group VALUES (1, 'g', 1)")
        db.execute("INSERT INTO brook_progress VALUES (1, 1, 1)")
        db.execute("INSERT INTO brook_receipt VALUES (1, 1, 'x//1/1/1', 0)")
        db.execute("INSERT INTO brook_claim VALUES (1, ?, 1, 1)", (place,))
    with Brook(f"sqlite:///{tmp_path}/q.db") as mq:
        assert mq.send("t", b"c").offset == 2
        batch = mq.receive("g")
        assert (batch.bodies, batch.redelivered) == ([b"a", b"b", b"c"], [True, False, False])
        mq.ack(batch)
        assert [state.bytes for state in mq.topic_states()] == [3]
        assert mq.trace("t", 0).sender is None
        mq._store.add_alert(Alert("slow", "g", mq.client, "x", "slow", 1.0))
        mq._store.tell_listeners(mq.client, [ListenerPlace(1, 1, 2)], 1.0)
        assert (len(mq.alerts()), [state.lag for state in mq.listener_states()]) == (1, [1])


def test_failed_migration_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/q.db"
    with monkeypatch.context() as patch:
        patch.setattr(sql, "MIGRATIONS", (*sql.MIGRATIONS, ("CREATE TABLE brook_extra (x)", "nonsense")))
        with pytest.raises(Exception, match="nonsense"):
            Brook(url)
    with closing(sqlite3.connect(tmp_path / "q.db")) as db:
        assert db.execute("SELECT count(*) FROM sqlite_schema").fetchall() == [(0,)]
    Brook(url).close()


def test_lives_beside_other_tables(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "q.db")) as db, db:
        db.execute("CREATE TABLE topic (mine)")
        db.execute("PRAGMA user_version = 7")
    with Brook(f"sqlite:///{tmp_path}/q.db") as mq:
        mq.send("t", b"x")
    with closing(sqlite3.connect(tmp_path / "q.db")) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (7,)


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("normal", 1), ("off", 0)])
def test_durability(tmp_path: Path, durability: str, level: int) -> None:
    with Brook(f"sqlite:///{tmp_path}/q.db", durability=durability) as mq:  # type: ignore[arg-type]
        database = mq._store._database  # type: ignore[attr-defined]
        for connection in (database._writer, database._reader):
            assert connection.execute("PRAGMA synchronous").fetchone() == (level,)
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_the_log_does_not_grow_without_bound(tmp_path: Path) -> None:
    log = tmp_path / "q.db-wal"
    with Brook(f"sqlite:///{tmp_path}/q.db", durability="off") as mq:
        (topic,) = mq.create_topics(["t"])
        for _ in range(100):
            mq.append_runs([Run(topic, 10, bytes(1_000_000))])
        assert log.stat().st_size < 3 * sqlite_database.LOG_BYTES
        mq.subscribe("g")
        assert mq.lag("g") == 1000


def test_truncated_messages_leave_groups_working(tmp_path: Path) -> None:
    with Brook(f"sqlite:///{tmp_path}/q.db") as mq:
        mq.append(["t"] * 10, [b"x"] * 10)
        mq.subscribe("g")
        claimed = mq.receive("g", max_messages=4)
        with closing(sqlite3.connect(tmp_path / "q.db")) as db, db:
            db.execute("DELETE FROM brook_run")
            db.execute("DELETE FROM brook_body")
        mq.ack(claimed)
        assert mq.send("t", b"new").offset == 10
        assert mq.receive("g", max_messages=3).offsets == [10]


@pytest.mark.parametrize("tables", [["run"], ["body"], ["run", "body"]])
def test_a_truncated_table_costs_one_look(tmp_path: Path, tables: list[str]) -> None:
    with Brook(f"sqlite:///{tmp_path}/q.db", durability="off") as mq:
        mq.append(["t"] * 100_000, [b"x"] * 100_000)
        mq.subscribe("g")
        late = mq.receive("g", max_messages=1)
        with closing(sqlite3.connect(tmp_path / "q.db")) as db, db:
            for table in tables:
                db.execute(f"DELETE FROM brook_{table}")
        assert mq.send("t", b"new").offset == 100_000
        before = mq._store._database._writer.total_changes  # type: ignore[attr-defined]
        assert mq.receive("g", max_messages=1).bodies == [b"new"]
        assert mq._store._database._writer.total_changes - before < 20  # type: ignore[attr-defined]
        mq.ack(late)
        assert mq.lag("g") == 1


def test_half_a_claim_truncated(tmp_path: Path) -> None:
    with Brook(f"sqlite:///{tmp_path}/q.db") as mq:
        (first, _) = mq.append_runs(
            [Run(mq.create_topics(["s"])[0], 5, b"sssss"), Run(mq.create_topics(["t"])[0], 2, b"ab")]
        )
        mq.append(["t"], [b"c"])
        mq.subscribe("g", ["t"])
        with closing(sqlite3.connect(tmp_path / "q.db")) as db, db:
            db.execute("DELETE FROM brook_run WHERE count = 2")
        batch = mq.receive("g")
        assert (first, batch.offsets, batch.bodies) == (0, [2], [b"c"])
        mq.ack(batch)
        assert mq.lag("g") == 0


def is_locked(door: Path) -> bool:
    with door.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_busy_process_does_not_starve_others(tmp_path: Path) -> None:
    """Whoever waits is next, though the busy one wants its next turn as soon as it lets go of this one."""
    turns = list[str]()
    with (
        closing(SqliteStore(tmp_path / "q.db", patience=60)) as busy,
        closing(SqliteStore(tmp_path / "q.db", patience=60)) as other,
    ):
        thread = threading.Thread(target=lambda: other._database.write(lambda db: turns.append("other")))

        def until_other_waits(_: object) -> None:
            thread.start()
            wait_until(lambda: is_locked(tmp_path / "q.db-door"), "the other to be inside the door")
            turns.append("busy")

        busy._database.write(until_other_waits)
        busy._database.write(lambda db: turns.append("busy again"))
        thread.join()
    assert turns == ["busy", "other", "busy again"]


def test_a_reset_writes_the_same_whatever_the_distance(tmp_path: Path) -> None:
    with Brook(f"sqlite:///{tmp_path}/q.db", durability="off") as mq:
        mq.append(["t"] * 10, [b"x"] * 10)
        mq.subscribe("g")
        mq.ack(mq.receive("g"))
        writer = mq._store._database._writer  # type: ignore[attr-defined]
        changes = []
        for position in (9, 0):
            before = writer.total_changes
            mq.reset("g", position)
            changes.append(writer.total_changes - before)
    assert changes == [1, 1]


def test_space_is_used_again(tmp_path: Path) -> None:
    sizes = []
    with Brook(f"sqlite:///{tmp_path}/q.db", durability="off") as mq:
        for _ in range(4):
            for _ in range(20):
                mq.send("t", bytes(50_000))
            mq.clean(keep_bytes=0)
            sizes += mq._store._database.read(lambda db: db.rows("PRAGMA page_count"))  # type: ignore[attr-defined]
    assert sizes[3][0] < sizes[0][0] * 1.2


def test_a_consumer_outlives_a_locked_database(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    got, seen = threading.Event(), threading.Event()
    caplog.handler.addFilter(lambda record: not ("database is locked" in record.getMessage() and seen.set()))
    with Brook(f"sqlite:///{tmp_path}/q.db", patience=0.0, durability="off") as impatient:
        impatient.send("t", b"x")
        register = impatient.consumer("t", group="g", threads=1)
        with closing(sqlite3.connect(tmp_path / "q.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            register(lambda messages: got.set())
            assert seen.wait(60)
        assert got.wait(60)


def frames(log: Path) -> int:
    """How many pages are in a log that has not been copied yet."""
    return (log.stat().st_size - 32) // (4096 + 24)


@pytest.mark.parametrize(("size", "pages"), [(100, range(100, 115)), (4000, range(300, 600))])
def test_a_small_send_writes_one_page(tmp_path: Path, size: int, pages: range) -> None:
    with Brook(f"sqlite:///{tmp_path}/q.db", durability="off") as mq:
        mq.create_topics(["t"])
        before = frames(tmp_path / "q.db-wal")
        for _ in range(100):
            mq.send("t", bytes(size))
        assert frames(tmp_path / "q.db-wal") - before in pages


def test_an_append_that_fails_takes_no_offsets(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "q.db")) as store:
        store.create_topics(["t"])
        assert store.append([Run(1, 1, b"x")], 0) == [0]
        with pytest.raises(StoreFailed, match="not supported"):
            store.append([Run(1, 1, b"x", sender=object())], 0)  # type: ignore[arg-type]
        assert store.append([Run(1, 1, b"x")], 0) == [1]


def test_what_another_process_appends_is_seen(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "q.db")) as ours, closing(SqliteStore(tmp_path / "q.db")) as theirs:
        ours.create_topics(["t"])
        turns = [ours, ours, theirs, ours, theirs, theirs, ours]
        assert [store.append([Run(1, 1, b"x")], 0) for store in turns] == [[n] for n in range(7)]
        theirs.set_rule(1, "closed")
        with pytest.raises(Forbidden):
            ours.append([Run(1, 1, b"x")], 0)


def test_the_end_of_a_topic_outlives_its_messages(tmp_path: Path) -> None:
    with Brook(f"sqlite:///{tmp_path}/q.db") as mq:
        mq.append(["s", "t", "t"], [b"x"] * 3)
        mq.clean(keep_bytes=0)
        assert [state.sent for state in mq.topic_states()] == [2, 1]
        assert (mq.send("t", b"x").offset, mq.send("s", b"x").offset) == (2, 1)

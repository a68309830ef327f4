"""Queries by key and tag find their runs without a look at the others."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from brook import Brook, Message, Outgoing
from brook.sql import sqlite as sql
from brook.sql.statements import BLOCK_BITS, LABELLED_RUNS, OFFSET_BITS

BLOCK = 1 << BLOCK_BITS


@pytest.fixture
def many(mq: Brook) -> Iterator[Brook]:
    """Over three blocks, in runs that do not end where blocks do; every seventh message has a key."""
    keys = [f"k{n % 5}" if n % 7 == 0 else None for n in range(3 * BLOCK)]
    for first in range(0, 3 * BLOCK, 100):
        mq.send_many([Outgoing("t", b"%d" % n, key=keys[n]) for n in range(first, min(first + 100, 3 * BLOCK))])
    yield mq


def offsets(messages: list[Message]) -> list[int]:
    return [message.offset for message in messages]


def expected(key: int, first: int = 0) -> list[int]:
    return [n for n in range(first, 3 * BLOCK) if n % 7 == 0 and n % 5 == key]


def plan(database: Path, statement: str) -> list[str]:
    with closing(sqlite3.connect(database)) as db:
        names = dict.fromkeys(("place", "count", "block", "label", "runs"), 0)
        return [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {statement}", names)]


def test_all_are_found_in_order(many: Brook) -> None:
    for key in range(5):
        assert offsets(many.query("t", key=f"k{key}", limit=3 * BLOCK)) == expected(key)
    assert offsets(many.query("t", key="k3", first=BLOCK + 50, limit=9)) == expected(3, BLOCK + 50)[:9]
    assert many.query("t", key="k") == many.query("t", tag="none") == []


def test_nothing_is_scanned(tmp_path: Path) -> None:
    Brook(f"sqlite:///{tmp_path}/q.db").close()
    steps = plan(tmp_path / "q.db", LABELLED_RUNS)
    assert steps and all(step.startswith("SEARCH") for step in steps), steps
    full = plan(tmp_path / "q.db", "SELECT place FROM brook_label WHERE label = :label")
    assert any(step.startswith("SCAN") for step in full), "the test would not notice a scan"


def test_labels_go_with_their_blocks(many: Brook) -> None:
    def blocks() -> list[int]:
        found = "SELECT DISTINCT block FROM brook_label ORDER BY 1"
        rows = many._store._database.read(lambda db: db.rows(found))  # type: ignore[attr-defined]
        return [block - (1 << OFFSET_BITS - BLOCK_BITS) for (block,) in rows]

    assert blocks() == [0, 1, 2]
    many.subscribe("g")
    held = many.receive("g", max_messages=10)
    many.clean(keep_bytes=0)
    assert blocks() == [0], "some of the first is in flight"
    assert offsets(many.query("t", key="k0")) == [n for n in expected(0) if n < 100]
    many.ack(held)
    many.send("t", b"new", key="k0")
    many.clean(keep_bytes=len(b"new"))
    assert blocks() == [3]


def test_what_was_deleted_by_hand_hides_nothing(many: Brook) -> None:
    delete = "DELETE FROM brook_run WHERE place & 0xfffffffffff < 3000"
    many._store._database.write(lambda db: db.change(delete, ()))  # type: ignore[attr-defined]
    assert offsets(many.query("t", key="k0", limit=5)) == expected(0, 3000)[:5]


def test_older_queues_get_their_labels(tmp_path: Path) -> None:
    place = 1 << OFFSET_BITS
    with closing(sqlite3.connect(tmp_path / "q.db", isolation_level=None)) as db:
        for statement in (each for migration in sql.MIGRATIONS[:4] for each in migration):
            db.execute(statement)
        db.execute("UPDATE brook_schema SET version = 4, last_body = 2")
        db.execute("INSERT INTO brook_topic (id, name, next) VALUES (1, 't', 3)")
        extras = '[["k\\u00e4y", ["red"], {"red herring": "green"}], null]'
        db.execute("INSERT INTO brook_body VALUES (1, CAST('ab' AS BLOB), NULL, ?)", (extras,))
        db.execute("INSERT INTO brook_body VALUES (2, CAST('c' AS BLOB), NULL, NULL)")
        runs = [(place, 2, 1000, 1, 2), (place + 2, 1, 1000, 2, 1)]
        db.executemany("INSERT INTO brook_run (place, count, sent, body, bytes) VALUES (?, ?, ?, ?, ?)", runs)
    with Brook(f"sqlite:///{tmp_path}/q.db") as mq:
        assert offsets(mq.query("t", key="käy")) == offsets(mq.query("t", tag="red")) == [0]
    with closing(sqlite3.connect(tmp_path / "q.db")) as db:
        assert sorted(db.execute("SELECT label, place FROM brook_label")) == [("käy", place), ("red", place)]


def test_long_keys_are_told_apart(mq: Brook) -> None:
    mq.send("t", b"1", key="k" * 1000)
    mq.send("t", b"2", key="k" * 999 + "l")
    assert [message.body for message in mq.query("t", key="k" * 1000)] == [b"1"]


def test_an_empty_topic_behind_others(mq: Brook) -> None:
    """Nothing before it is looked through."""
    mq.send("t", b"x", key="k")
    mq.create_topics(["u"])
    assert mq.query("u", key="k") == []

"""How fast Brook's core is on SQLite, each figure beside the bare loop that it is to be compared with.

    python bench/brook_core.py [--directory DIR] [--seconds S] [--rounds N]

All with durability full (synchronous = FULL, WAL), bodies of 128 bytes. The directory decides which disk is
measured. A contestant and the bare loop that it is compared with run right after each other in each round; rates
and ratios are the medians of the rounds.
"""

import argparse
import contextlib
import itertools
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from contests import Contest, hold, in_threads

from brook import Brook, Outgoing, Run

BODY = 128


def bare(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE message (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")
    return connection


def repeated(seconds: float, step: Callable[[], int]) -> float:
    """Messages a second."""
    begin, messages = time.perf_counter(), 0
    while (spent := time.perf_counter() - begin) < seconds:
        messages += step()
    return messages / spent


def bare_produce(path: Path, seconds: float, batch: int) -> float:
    connection, bodies, ids = bare(path), [os.urandom(BODY) for _ in range(batch)], itertools.count()

    def step() -> int:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO message VALUES (?, ?)", zip(ids, bodies, strict=False))
        connection.execute("COMMIT")
        return batch

    return repeated(seconds, step)


def bare_produce_keys(path: Path, seconds: float, batch: int) -> float:
    connection, body, ids = bare(path), os.urandom(BODY), itertools.count()
    connection.execute("ALTER TABLE message ADD COLUMN key TEXT")
    connection.execute("CREATE INDEX message_key ON message (key)")

    def step() -> int:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO message VALUES (?, ?, ?)", [(next(ids), body, k) for k in keys(batch)])
        connection.execute("COMMIT")
        return batch

    return repeated(seconds, step)


def brook_produce_keys(path: Path, seconds: float, batch: int) -> float:
    body = os.urandom(BODY)
    with Brook(f"sqlite:///{path}") as mq:
        return repeated(seconds, lambda: len(mq.send_many([Outgoing("t", body, key=key) for key in keys(batch)])))


def keys(count: int) -> list[str]:
    """As different as they can be, which is what an index likes least."""
    return [os.urandom(8).hex() for _ in range(count)]


def brook_produce(path: Path, seconds: float, batch: int, topics: int = 1) -> float:
    bodies = [os.urandom(BODY) for _ in range(batch)]
    with Brook(f"sqlite:///{path}") as mq:
        ids = mq.create_topics(f"t{n}" for n in range(topics))
        columns = [ids[n % topics] for n in range(batch)]
        return repeated(seconds, lambda: len(mq.append(columns, bodies)))


def produce_runs(path: Path, seconds: float, batch: int, topics: int) -> float:
    each = batch // topics
    block = memoryview(os.urandom(BODY * batch))
    with Brook(f"sqlite:///{path}") as mq:
        ids = mq.create_topics(f"t{n}" for n in range(topics))

        def step() -> int:
            size = BODY * each
            mq.append_runs([Run(t, each, block[n * size : (n + 1) * size]) for n, t in enumerate(ids)])
            return batch

        return repeated(seconds, step)


def bare_consume(path: Path, messages: int, batch: int) -> float:
    connection = bare(path)
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO message VALUES (?, ?)", ((n, os.urandom(BODY)) for n in range(messages)))
    connection.execute("COMMIT")
    begin, last = time.perf_counter(), -1
    while rows := connection.execute(
        "SELECT id, body FROM message WHERE id > ? ORDER BY id LIMIT ?", (last, batch)
    ).fetchall():
        last = rows[-1][0]
    return messages / (time.perf_counter() - begin)


def brook_consume(path: Path, messages: int, batch: int, topics: int = 1) -> float:
    with Brook(f"sqlite:///{path}") as mq:
        ids = mq.create_topics(f"t{n}" for n in range(topics))
        bodies = [os.urandom(BODY) for _ in range(batch)]
        for _ in range(messages // batch):
            mq.append([ids[n % topics] for n in range(batch)], bodies)
        mq.subscribe("all")
        begin, got = time.perf_counter(), 0
        while received := mq.receive("all", max_messages=batch):
            got += len(received.bodies)
            mq.ack(received)
        assert got == messages // batch * batch
        return got / (time.perf_counter() - begin)


def one_by_one(path: Path, seconds: float, threads: int) -> float:
    body = os.urandom(BODY)
    with Brook(f"sqlite:///{path}") as mq:
        mq.create_topics(["t"])
        return in_threads(seconds, threads, lambda: lambda: mq.send("t", body))


def bare_one_by_one(path: Path, seconds: float, threads: int) -> float:
    """Each thread has a connection of its own, and waits for the others' commits as SQLite has it wait."""
    body = os.urandom(BODY)
    bare(path).close()

    def new_sender() -> Callable[[], object]:
        connection = sqlite3.connect(path, isolation_level=None, timeout=60)
        connection.execute("PRAGMA synchronous = FULL")

        def send() -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO message (body) VALUES (?)", (body,))
            connection.execute("COMMIT")

        return send

    return in_threads(seconds, threads, new_sender)


def contests(seconds: float, backlog: int) -> list[Contest[Path]]:
    bare_writes, bare_reads, bare_commits = "bare executemany", "bare select", "bare, a commit per message"
    bare_keys, bare_threads = "bare executemany, keys indexed", "bare, 20 threads, a commit per message"
    return [
        Contest(bare_writes, lambda p: bare_produce(p, seconds, 1000)),
        Contest("append, 1 topic, batch 1000", lambda p: brook_produce(p, seconds, 1000), bare_writes, 0.7),
        Contest("append, 256 topics, batch 4096", lambda p: brook_produce(p, seconds, 4096, 256), bare_writes),
        Contest("append_runs, 256 topics, batch 4096", lambda p: produce_runs(p, seconds, 4096, 256), bare_writes),
        Contest("append_runs, 256 topics, batch 16384", lambda p: produce_runs(p, seconds, 16384, 256), bare_writes),
        Contest(bare_keys, lambda p: bare_produce_keys(p, seconds, 1000)),
        Contest("send_many, a key each, batch 1000", lambda p: brook_produce_keys(p, seconds, 1000), bare_keys, 0.7),
        Contest(bare_reads, lambda p: bare_consume(p, backlog, 1000)),
        Contest("receive + ack, 1 topic, batch 1000", lambda p: brook_consume(p, backlog, 1000), bare_reads, 0.3),
        Contest("receive + ack, 256 topics, batch 4096", lambda p: brook_consume(p, backlog, 4096, 256), bare_reads),
        Contest(bare_commits, lambda p: bare_produce(p, seconds, 1)),
        Contest("send, 1 thread", lambda p: one_by_one(p, seconds, 1), bare_commits),
        Contest(bare_threads, lambda p: bare_one_by_one(p, seconds, 20)),
        Contest("send, 20 threads", lambda p: one_by_one(p, seconds, 20), bare_commits, 5),
        Contest("send, 20 threads again", lambda p: one_by_one(p, seconds, 20), bare_threads, 5),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, help="where the databases go; a temporary one by default")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each contestant and round")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    @contextlib.contextmanager
    def new_file() -> Iterator[Path]:
        with tempfile.TemporaryDirectory(dir=options.directory) as directory:
            yield Path(directory) / "bench.db"

    hold(contests(options.seconds, int(options.seconds * 200_000)), options.rounds, new_file)


if __name__ == "__main__":
    main()

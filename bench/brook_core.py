"""How fast Brook's core is on SQLite, each figure beside the bare loop that it is to be compared with.

    python bench/brook_core.py [--directory DIR] [--seconds S]

All with durability full (synchronous = FULL, WAL), bodies of 128 bytes. The directory decides which disk is
measured. Contestants take turns, the best of three rounds counts.
"""

import argparse
import itertools
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from brook import Brook, Run

BODY = 128
ROUNDS = 3


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


def brook_produce(path: Path, seconds: float, batch: int, topics: int = 1) -> float:
    bodies = [os.urandom(BODY) for _ in range(batch)]
    with Brook(f"sqlite:///{path}") as mq:
        ids = mq.create_topics(f"t{n}" for n in range(topics))
        columns = [ids[n % topics] for n in range(batch)]
        return repeated(seconds, lambda: len(mq.append(columns, bodies)))


def brook_produce_runs(path: Path, seconds: float, batch: int, topics: int) -> float:
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


def brook_consume(path: Path, messages: int, batch: int, topics: int = 1, *, packed: bool = False) -> float:
    with Brook(f"sqlite:///{path}") as mq:
        ids = mq.create_topics(f"t{n}" for n in range(topics))
        bodies = [os.urandom(BODY) for _ in range(batch)]
        for _ in range(messages // batch):
            mq.append([ids[n % topics] for n in range(batch)], bodies)
        mq.subscribe("all")
        begin, got = time.perf_counter(), 0
        while received := mq.receive("all", max_messages=batch):
            got += len(received) if packed else len(received.bodies)
            mq.ack(received)
        assert got == messages // batch * batch
        return got / (time.perf_counter() - begin)


def commit_per_message(path: Path, seconds: float) -> float:
    return bare_produce(path, seconds, 1)


def one_by_one(path: Path, seconds: float, threads: int) -> float:
    body, end, counts = os.urandom(BODY), time.perf_counter() + seconds, [0] * threads
    with Brook(f"sqlite:///{path}") as mq:
        mq.create_topics(["t"])

        def send(thread: int) -> None:
            while time.perf_counter() < end:
                mq.send("t", body)
                counts[thread] += 1

        workers = [threading.Thread(target=send, args=(n,)) for n in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    return sum(counts) / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, help="where the databases go; a temporary one by default")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each contestant and round")
    options = parser.parse_args()
    s, backlog = options.seconds, int(options.seconds * 200_000)
    contests: list[tuple[str, Callable[[Path], float]]] = [
        ("bare executemany, 1 topic, batch 1000", lambda p: bare_produce(p, s, 1000)),
        ("brook append, 1 topic, batch 1000", lambda p: brook_produce(p, s, 1000)),
        ("bare select, 1 topic, batch 1000", lambda p: bare_consume(p, backlog, 1000)),
        ("brook receive + ack, 1 topic, batch 1000", lambda p: brook_consume(p, backlog, 1000)),
        ("bare, a commit per message, 1 thread", lambda p: commit_per_message(p, s)),
        ("brook send, 1 thread", lambda p: one_by_one(p, s, 1)),
        ("brook send, 20 threads", lambda p: one_by_one(p, s, 20)),
        ("brook append, 256 topics, batch 4096", lambda p: brook_produce(p, s, 4096, 256)),
        ("brook append_runs, 256 topics, batch 4096", lambda p: brook_produce_runs(p, s, 4096, 256)),
        ("brook append_runs, 256 topics, batch 16384", lambda p: brook_produce_runs(p, s, 16384, 256)),
        ("brook receive + ack, 256 topics, batch 4096", lambda p: brook_consume(p, backlog, 4096, 256)),
        (
            "brook receive + ack, packed, 256 topics, batch 4096",
            lambda p: brook_consume(p, backlog, 4096, 256, packed=True),
        ),
    ]
    best = dict.fromkeys((name for name, _ in contests), 0.0)
    for _ in range(ROUNDS):
        for name, contest in contests:
            with tempfile.TemporaryDirectory(dir=options.directory) as directory:
                best[name] = max(best[name], contest(Path(directory) / "bench.db"))
    for name, rate in best.items():
        print(f"{name:55} {rate:12,.0f} messages/s")
    names = list(best)
    print(f"produce: {best[names[1]] / best[names[0]]:.2f} of bare (wanted 0.7)")
    print(f"consume: {best[names[3]] / best[names[2]]:.2f} of bare (wanted 0.3)")
    print(f"one by one, 20 threads: {best[names[6]] / best[names[4]]:.1f} x a commit per message (wanted 5)")


if __name__ == "__main__":
    main()

"""How fast Brook is on MariaDB, beside a sketch of the design that it succeeds, on the same server in the same run.

    python bench/brook_mariadb.py [--directory DIR] [--seconds S] [--rounds N] [--messages M]

The sketch does what that design does and nothing else: a send is a place from Redis, or from a row of the topic, and
a row committed; a pull locks the row of the group, adds a row of the log for each message, and commits; an ack
changes those rows. Every commit is synced. Bodies of 128 bytes. Producing: 20 threads of one process, one message
after the other. Consuming: 3 processes, each with one thread that pulls, or with the 5 threads that handlers have.
Contestants run right after each other in each round; rates and ratios are the medians of the rounds.
"""

import argparse
import contextlib
import functools
import multiprocessing
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

# This directory comes last: its redis.py is not the client.
sys.path.append(sys.path.pop(0))
sys.path.insert(0, str(Path(__file__).parents[1] / "brook" / "tests"))

import pymysql
import redis
from contests import Contest, hold, in_threads
from servers import HOST, MariaDb, Redis, free_ports

from brook import Brook, Message

BODY = bytes(range(128))
PRODUCERS, CLIENTS, HANDLERS = 20, 3, 5
LOOK = 0.01  # seconds between two looks whether all is done

SKETCH = (
    "CREATE TABLE topic (name VARCHAR(64) PRIMARY KEY, last_offset BIGINT NOT NULL)",
    "CREATE TABLE msg (id BIGINT AUTO_INCREMENT PRIMARY KEY, topic VARCHAR(64), physical BIGINT, body LONGBLOB,"
    " sender VARCHAR(64), properties VARCHAR(255), tags VARCHAR(64), UNIQUE KEY (topic, physical))",
    "CREATE TABLE topic_group (topic VARCHAR(64), name VARCHAR(64), last_offset BIGINT, PRIMARY KEY (topic, name))",
    "CREATE TABLE topic_group_log (id BIGINT AUTO_INCREMENT PRIMARY KEY, topic VARCHAR(64), name VARCHAR(64),"
    " physical BIGINT, client VARCHAR(64), state INT, KEY (topic, name, physical))",
    "INSERT INTO topic VALUES ('t', 0)",
    "INSERT INTO topic_group VALUES ('t', 'g', 0)",
)
ADD = "INSERT INTO msg (topic, physical, body, sender, properties, tags) VALUES ('t', %s, %s, 'me', '{}', '')"


class Place(NamedTuple):
    """Where the databases of one contestant are."""

    port: int
    redis_port: int
    database: str

    @property
    def url(self) -> str:
        return f"mysql://root@{HOST}:{self.port}/{self.database}"

    def connect(self) -> Any:
        return pymysql.connect(host=HOST, port=self.port, user="root", database=self.database)


Left: TypeAlias = Any  # messages that no handler has had, a multiprocessing.Value
Client: TypeAlias = Callable[[Place, int, Left], None]  # with batches of so many


def sketch_by_redis(place: Place, seconds: float) -> float:
    def new_sender() -> Callable[[], object]:
        db, offsets = place.connect(), redis.Redis(HOST, place.redis_port)
        cursor = db.cursor()

        def send() -> None:
            cursor.execute(ADD, (offsets.incr(place.database), BODY))
            db.commit()

        return send

    return in_threads(seconds, PRODUCERS, new_sender)


def sketch_by_row(place: Place, seconds: float) -> float:
    def new_sender() -> Callable[[], object]:
        db = place.connect()
        cursor = db.cursor()

        def send() -> None:
            cursor.execute("UPDATE topic SET last_offset = LAST_INSERT_ID(last_offset + 1) WHERE name = 't'")
            cursor.execute(ADD, (cursor.lastrowid, BODY))
            db.commit()

        return send

    return in_threads(seconds, PRODUCERS, new_sender)


def brook_produce(place: Place, seconds: float, options: str = "") -> float:
    with Brook(place.url + options) as mq:
        mq.create_topics(["t"])
        return in_threads(seconds, PRODUCERS, lambda: lambda: mq.send("t", BODY))


def brook_produce_with_redis(place: Place, seconds: float) -> float:
    return brook_produce(place, seconds, f"?redis={HOST}:{place.redis_port}")


def in_processes(work: Client, place: Place, batch: int, messages: int) -> float:
    """Messages a second that CLIENTS processes have consumed together."""
    context = multiprocessing.get_context("spawn")
    ready, go, left = context.Semaphore(0), context.Event(), context.Value("q", messages)
    workers = [context.Process(target=consume, args=(work, place, batch, left, ready, go)) for _ in range(CLIENTS)]
    for worker in workers:
        worker.start()
    for _ in workers:
        ready.acquire()
    begin = time.perf_counter()
    go.set()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    return messages / (time.perf_counter() - begin)


def consume(work: Client, place: Place, batch: int, left: Left, ready: Any, go: Any) -> None:
    place.connect().close()
    ready.release()
    go.wait()
    work(place, batch, left)


def sketch_client(place: Place, batch: int, left: Left) -> None:
    db = place.connect()
    cursor = db.cursor()
    while True:
        cursor.execute("SELECT last_offset FROM topic_group WHERE topic = 't' AND name = 'g' FOR UPDATE")
        ((last,),) = cursor.fetchall()
        cursor.execute(
            "SELECT physical FROM msg WHERE topic = 't' AND physical > %s ORDER BY 1 LIMIT %s", (last, batch)
        )
        offsets = [physical for (physical,) in cursor.fetchall()]
        if not offsets:
            return
        cursor.executemany(
            "INSERT INTO topic_group_log (topic, name, physical, client, state) VALUES ('t', 'g', %s, 'me', 0)", offsets
        )
        cursor.execute("UPDATE topic_group SET last_offset = %s WHERE topic = 't' AND name = 'g'", (offsets[-1],))
        db.commit()
        span = (offsets[0], offsets[-1])
        cursor.execute("SELECT body FROM msg WHERE topic = 't' AND physical BETWEEN %s AND %s", span)
        assert len(cursor.fetchall()) == len(offsets)
        cursor.execute(
            "UPDATE topic_group_log SET state = 1 WHERE topic = 't' AND name = 'g' AND physical BETWEEN %s AND %s", span
        )
        db.commit()


def sketch_handlers(place: Place, batch: int, left: Left) -> None:
    threads = [threading.Thread(target=sketch_client, args=(place, batch, left)) for _ in range(HANDLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def brook_client(place: Place, batch: int, left: Left) -> None:
    with Brook(place.url) as mq:
        while received := mq.receive("g", max_messages=batch):
            assert len(received.bodies) == len(received)
            mq.ack(received)


def brook_handlers(place: Place, batch: int, left: Left) -> None:
    with Brook(place.url) as mq:

        @mq.consumer(group="g", threads=HANDLERS, batch=batch)
        def handle(messages: list[Message]) -> None:
            with left.get_lock():
                left.value -= len(messages)

        while left.value > 0:
            time.sleep(LOOK)


def sketch_consume(client: Client, place: Place, batch: int, messages: int) -> float:
    with contextlib.closing(place.connect()) as db, db.cursor() as cursor:
        cursor.executemany(ADD, [(n + 1, BODY) for n in range(messages)])
        db.commit()
    return in_processes(client, place, batch, messages)


def brook_consume(client: Client, place: Place, batch: int, messages: int) -> float:
    with Brook(place.url) as mq:
        mq.append(["t"] * messages, [BODY] * messages)
        mq.subscribe("g")
    return in_processes(client, place, batch, messages)


def contests(seconds: float, messages: int) -> list[Contest[Place]]:
    by_redis, by_row, pull_10, pull_1000, handle_10 = (
        "sketch, place from Redis", "sketch, place from a row", "sketch, pulls of 10", "sketch, pulls of 1000",
        "sketch, 5 threads a client, 10 each",
    )  # fmt: skip
    few = messages // 10
    return [
        Contest(by_redis, lambda p: sketch_by_redis(p, seconds)),
        Contest(by_row, lambda p: sketch_by_row(p, seconds)),
        Contest("Brook, send", lambda p: brook_produce(p, seconds), by_redis, 5),
        Contest("Brook with Redis, send", lambda p: brook_produce_with_redis(p, seconds), by_redis, 5),
        Contest(pull_10, lambda p: sketch_consume(sketch_client, p, 10, few)),
        Contest("Brook, receives of 10", lambda p: brook_consume(brook_client, p, 10, few), pull_10),
        Contest(pull_1000, lambda p: sketch_consume(sketch_client, p, 1000, messages)),
        Contest("Brook, receives of 1000", lambda p: brook_consume(brook_client, p, 1000, messages), pull_1000, 5),
        Contest(handle_10, lambda p: sketch_consume(sketch_handlers, p, 10, messages // 2)),
        Contest(
            "Brook, handlers of 10, 5 a client",
            lambda p: brook_consume(brook_handlers, p, 10, messages // 2),
            handle_10,
            5,
        ),
    ]


@contextlib.contextmanager
def servers(directory: Path) -> Iterator[tuple[MariaDb, int]]:
    port, redis_port = free_ports(2)
    maria = MariaDb(directory, port, "--innodb-flush-method=fsync", "--innodb-buffer-pool-size=512M")
    maria.initialise()
    offsets = Redis(directory, redis_port)
    try:
        maria.server.start()
        offsets.server.start()
        yield maria, redis_port
    finally:
        offsets.server.kill()
        maria.server.kill()


@contextlib.contextmanager
def new_database(maria: MariaDb, redis_port: int) -> Iterator[Place]:
    place = Place(maria.port, redis_port, maria.new_database())
    with contextlib.closing(place.connect()) as db, db.cursor() as cursor:
        for statement in SKETCH:
            cursor.execute(statement)
        db.commit()
    yield place
    maria.ask(f"DROP DATABASE {place.database}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, help="where the server's files go; a temporary one by default")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each producing contestant and round")
    parser.add_argument("--messages", type=int, default=100_000, help="to consume; a tenth of them in batches of 10")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(dir=options.directory) as directory,
        servers(Path(directory)) as (maria, redis_port),
    ):
        new_place = functools.partial(new_database, maria, redis_port)
        hold(contests(options.seconds, options.messages), options.rounds, new_place)


if __name__ == "__main__":
    main()

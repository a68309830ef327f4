"""Brook on SQLite against the queues that people would pick instead, at the same durability.

    .venv/bin/python -P bench/brook_peers.py [--directory DIR] [--seconds S] [--rounds N] [--only NAME ...]

    huey, litequeue, persist-queue   on SQLite, synchronous = FULL
    procrastinate                    on PostgreSQL as Debian sets it up (fsync and synchronous_commit on)
    RQ                               on Redis with appendonly always

Every send is on the disk when it returns. Bodies have 128 bytes. In each round each queue begins empty, and

    one       one thread sends one message at a time
    threads   20 threads of one process do
    batch     one thread sends 1,000 at a time, where the queue can
    consume   one worker hands every message to a function that does nothing, and acknowledges it

Rates are messages a second, the medians of the rounds; a ratio is Brook's rate to the peer's in the same round. The
servers are Debian's (`apt-get install postgresql redis-server`), started here on free ports; PostgreSQL runs as the
user postgres, so this needs root.
"""

import argparse
import contextlib
import logging
import queue
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import huey
import litequeue
import persistqueue
import procrastinate
import psycopg
import redis
import rq

from ackworth.broker.ports import HOST, Ports
from ackworth.broker.process import wait_until
from ackworth.broker.redis_streams import BROKER as REDIS
from ackworth.broker.server import Server
from ackworth.testing.nodes import running
from brook import Brook, Message, Outgoing

BODY = "x" * 128
THREADS, BATCH = 20, 1000


class Peer(Protocol):
    """A queue that begins empty. `send` may be called by many threads."""

    def send(self) -> None: ...

    def send_batch(self) -> None:
        """BATCH messages at once. Raises NotImplementedError."""

    def consume(self, seconds: float) -> int:
        """For so long or until it is empty; how many messages."""


class OnBrook:
    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self._queue = stack.enter_context(Brook(f"sqlite:///{folder / 'brook.db'}"))
        self._body = BODY.encode()

    def send(self) -> None:
        self._queue.send("t", self._body)

    def send_batch(self) -> None:
        self._queue.send_many([Outgoing("t", self._body)] * BATCH)

    def consume(self, seconds: float) -> int:
        got = []

        @self._queue.consumer("t", group="g", threads=0, batch=100)
        def nothing(messages: list[Message]) -> None:
            got.append(len(messages))

        repeat(seconds, nothing.step)
        return sum(got)


class WithoutBatches:
    def send_batch(self) -> None:
        raise NotImplementedError


class OnHuey(WithoutBatches):
    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self._huey = huey.SqliteHuey(filename=str(folder / "huey.db"), fsync=True, results=False)
        self._task = self._huey.task()(nothing)

    def send(self) -> None:
        self._task(BODY)

    def consume(self, seconds: float) -> int:
        """As its worker does."""

        def step() -> bool:
            task = self._huey.dequeue()
            if task is not None:
                self._huey.execute(task)
            return task is not None

        return repeat(seconds, step)


class OnLitequeue(WithoutBatches):
    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self._path = folder / "litequeue.db"
        self._of_thread = threading.local()

    @property
    def _queue(self) -> Any:
        if not hasattr(self._of_thread, "queue"):
            self._of_thread.queue = litequeue.LiteQueue(str(self._path), timeout=60)
            self._of_thread.queue.conn.execute("PRAGMA synchronous = FULL")
        return self._of_thread.queue

    def send(self) -> None:
        self._queue.put(BODY)

    def consume(self, seconds: float) -> int:
        def step() -> bool:
            message = self._queue.pop()
            if message is not None:
                nothing(message.data)
                self._queue.done(message.message_id)
            return message is not None

        return repeat(seconds, step)


class OnPersistQueue(WithoutBatches):
    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self._queue = persistqueue.SQLiteAckQueue(str(folder), multithreading=True, auto_commit=True)
        stack.callback(self._queue.close)

    def send(self) -> None:
        self._queue.put(BODY)

    def consume(self, seconds: float) -> int:
        def step() -> bool:
            try:
                item = self._queue.get(block=False)
            except persistqueue.exceptions.Empty:
                return False
            nothing(item)
            self._queue.ack(item)
            return True

        return repeat(seconds, step)


class OnProcrastinate:
    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        url = stack.enter_context(postgresql(folder))
        self._app = procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=url, max_size=THREADS))
        stack.enter_context(self._app.open())
        self._app.schema_manager.apply_schema()
        self._url = url
        self._task = self._app.task(name="nothing")(nothing)

    def send(self) -> None:
        self._task.defer(body=BODY)

    def send_batch(self) -> None:
        self._task.batch_defer(*[{"body": BODY}] * BATCH)

    def consume(self, seconds: float) -> int:
        """Its worker, until the queue is empty."""
        with psycopg.connect(self._url) as connection:
            row = connection.execute("SELECT count(*) FROM procrastinate_jobs WHERE status = 'todo'").fetchone()
        app = self._app.with_connector(procrastinate.PsycopgConnector(conninfo=self._url))
        app.run_worker(wait=False, concurrency=10, install_signal_handlers=False, listen_notify=False)
        return int(row[0]) if row else 0


class OnRq:
    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        found = stack.enter_context(running(REDIS, folder / "redis", appendonly="always"))
        self._redis = redis.Redis(found.address["host"], found.address["port"])
        stack.callback(self._redis.close)
        self._queue = rq.Queue(connection=self._redis)

    def send(self) -> None:
        self._queue.enqueue(len, BODY)

    def send_batch(self) -> None:
        self._queue.enqueue_many([rq.Queue.prepare_data(len, (BODY,)) for _ in range(BATCH)])

    def consume(self, seconds: float) -> int:
        """Its worker without a fork for each job, until the queue is empty."""
        waiting = len(self._queue)
        rq.SimpleWorker([self._queue], connection=self._redis).work(burst=True, logging_level="ERROR")
        return waiting


PEERS: dict[str, Callable[[Path, contextlib.ExitStack], Peer]] = {
    "brook": OnBrook,
    "huey": OnHuey,
    "litequeue": OnLitequeue,
    "persist-queue": OnPersistQueue,
    "procrastinate": OnProcrastinate,
    "rq": OnRq,
}


@contextlib.contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """The address of a server of our own. PostgreSQL refuses to run as root."""
    programs = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    data = folder / "postgresql"
    data.mkdir()
    shutil.chown(data, "postgres", "postgres")
    for above in (folder, folder.parent):
        above.chmod(0o755)
    as_postgres = ("setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--pdeathsig=KILL")
    subprocess.run([*as_postgres, programs / "initdb", "-D", data, "--auth=trust"], check=True, capture_output=True)
    with Ports() as ports:
        port = ports.reserve()
        options = ("-D", data, "-p", str(port), "-h", HOST, "-k", data)
        server = Server("postgresql", [*as_postgres, programs / "postgres", *options], folder / "postgresql.log")
        server.start()
        try:
            url = f"postgresql://postgres@{HOST}:{port}/postgres"
            wait_until(lambda: answers(url), 30, "postgresql answers")
            yield url
        finally:
            server.stop()


def answers(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


def nothing(body: Any) -> None:
    """What every message is handed to."""


def repeat(seconds: float, step: Callable[[], object]) -> int:
    """How often, until it returns False or the time is over."""
    end, count = time.perf_counter() + seconds, 0
    while time.perf_counter() < end and step() is not False:
        count += 1
    return count


def by_threads(seconds: float, step: Callable[[], object]) -> int:
    counts: queue.Queue[int] = queue.Queue()
    threads = [threading.Thread(target=lambda: counts.put(repeat(seconds, step))) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts.get_nowait() for _ in threads)


def rate(act: Callable[[], int]) -> float:
    begin = time.perf_counter()
    done = act()
    return done / (time.perf_counter() - begin)


def one_round(name: str, folder: Path, seconds: float) -> dict[str, float]:
    with contextlib.ExitStack() as stack:
        peer = PEERS[name](folder, stack)
        rates = {
            "one": rate(lambda: repeat(seconds, peer.send)),
            "threads": rate(lambda: by_threads(seconds, peer.send)),
            "consume": rate(lambda: peer.consume(seconds)),
        }
        with contextlib.suppress(NotImplementedError):
            rates["batch"] = rate(lambda: BATCH * repeat(seconds, peer.send_batch))
        return rates


def shown(rounds: list[dict[str, dict[str, float]]], name: str, what: str) -> str:
    if what not in rounds[0][name]:
        return f"{'-':>22}"
    found = statistics.median(each[name][what] for each in rounds)
    ratio = statistics.median(each["brook"][what] / each[name][what] for each in rounds)
    return f"{found:12,.0f}/s {ratio:6.1f} x"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, help="where the queues lie; a temporary one by default")
    parser.add_argument("--seconds", type=float, default=0.7, help="for each figure and round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=[*PEERS][1:], help="these peers instead of all")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    names = ["brook", *(options.only or [*PEERS][1:])]
    rounds: list[dict[str, dict[str, float]]] = []
    for _ in range(options.rounds):
        rounds.append({})
        for name in names:
            with tempfile.TemporaryDirectory(dir=options.directory) as folder:
                rounds[-1][name] = one_round(name, Path(folder).resolve(), options.seconds)
    columns = ("one", "threads", "batch", "consume")
    print(f"{'':14}" + "".join(f"{column:>23}" for column in columns))
    for name in names:
        print(f"{name:14}" + " ".join(shown(rounds, name, column) for column in columns))


if __name__ == "__main__":
    main()

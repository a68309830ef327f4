"""kill -9: nothing acked is lost, and only what was in flight comes twice.

Once at every statement in turn, which is exact, and then at random among several processes at work,
which also hits the middle of statements.
"""

import contextlib
import itertools
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from servers import MariaDb

from brook import Brook
from brook.stores.mysql_session import MysqlSession

BODIES = [b"%d" % n for n in range(6)]

opened = partial(Brook, durability="off")  # a kill takes nothing that was written, synced or not

Life = Callable[[str, Callable[[str], object]], None]


def fill(mq: Brook, say: Callable[[str], object]) -> None:
    for body in BODIES[:2]:
        mq.send("t", body)
        say(f"sent {body.decode()}")
    mq.append(["t"] * 4, BODIES[2:])
    say("sent 5")
    mq.subscribe("g")


def life(url: str, say: Callable[[str], object]) -> None:
    """All that a client does; it says what has been done."""
    mq = opened(url)
    fill(mq, say)
    for _ in range(2):
        batch = mq.receive("g", max_messages=2)
        say(f"got {batch.offsets[-1]}")
        mq.ack(batch)
        say(f"acked {batch.offsets[-1]}")
    say("end")


def refusing(url: str, say: Callable[[str], object]) -> None:
    """Refuses what it gets, and acks it when it comes again."""
    times = itertools.count(1000)
    mq = opened(url, ladder=[1], clock=lambda: float(next(times)))
    fill(mq, say)
    for _ in range(2):
        batch = mq.receive("g", max_messages=2)
        say(f"got {batch.offsets[-1]}")
        mq.refuse(batch, "once more")
        again = mq.receive("g", max_messages=2)
        assert again.offsets == batch.offsets
        mq.ack(again)
        say(f"acked {batch.offsets[-1]}")
    say("end")


def boast(url: str, say: Callable[[str], object]) -> None:
    """Says that it has sent what it is about to send."""
    mq = opened(url)
    say("sent 0")
    mq.send("t", BODIES[0])
    say("end")


def piecemeal(url: str, say: Callable[[str], object]) -> None:
    """Sends a batch in more than one transaction."""
    mq = opened(url)
    mq.append(["t"] * 2, BODIES[:2])
    say("sent 1")
    for body in BODIES[2:]:
        mq.send("t", body)
    say("sent 5")
    say("end")


def ack_unseen(url: str, say: Callable[[str], object]) -> None:
    """Acks what nobody has seen yet."""
    mq = opened(url)
    mq.append(["t"] * 6, BODIES)
    say("sent 5")
    mq.subscribe("g")
    mq.ack(mq.receive("g", max_messages=2))
    mq.lag("g")
    say("got 1")
    say("end")


def killed_at(statement: int, url: str, live: Life) -> dict[str, int]:
    """Lead a life until the given statement, in a process of its own; what it said last of each kind."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        die_at(statement)
        live(url, lambda text: os.write(writing, f"{text}\n".encode()))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        lines = [line.split() for line in said]
    os.waitpid(child, 0)
    return {what: int(number[0]) if number else 0 for what, *number in lines}


def die_at(statement: int) -> None:
    statements = itertools.count(1)

    class Mortal(sqlite3.Connection):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.set_trace_callback(self.step)

        def step(self, _: str) -> None:
            if next(statements) == statement:
                os.kill(os.getpid(), signal.SIGKILL)

    def send(self: MysqlSession, text: str) -> None:
        real(self, text)
        if next(statements) == statement:  # the server has it; nobody will hear the answer
            os.kill(os.getpid(), signal.SIGKILL)

    sqlite3.connect = partial(sqlite3.connect, factory=Mortal)  # type: ignore[assignment]
    real, MysqlSession._execute = MysqlSession._execute, send  # type: ignore[method-assign]


def audit(url: str, said: dict[str, int]) -> None:
    """What is left is what was said to be done and, all of it or nothing, what was being done."""
    sent, got, acked = (said.get(what, -1) for what in ("sent", "got", "acked"))
    with opened(url) as mq:
        mq.subscribe("audit")
        stored = mq.receive("audit").bodies
        at_most = {-1: 0, 0: 1, 1: 5, 5: 5}[sent]
        assert stored in (BODIES[: sent + 1], BODIES[: at_most + 1])
        mq.subscribe("g")
        rest = list[int]()
        while batch := mq.receive("g"):
            rows = zip(batch.offsets, batch.redelivered, strict=True)
            assert all(again or offset > got for offset, again in rows), "a repeat was not flagged"
            rest += batch.offsets
            mq.ack(batch)
        assert mq.lag("g") == 0
    unacked = [range(acked + 1, len(stored)), range(got + 1, len(stored))]
    assert sorted(rest) in map(list, unacked), "an acked message came again, or one that was not acked did not"


def kill_everywhere(new_url: Callable[[], str], live: Life) -> int:
    """Audit what is left of a life that ends at its first statement, at its second, ...; how many it has."""
    for statement in range(1, 1000):
        url = new_url()
        said = killed_at(statement, url, live)
        audit(url, said)
        if "end" in said:
            return statement
    raise AssertionError("the life has no end")


@pytest.fixture
def new_file(tmp_path: Path) -> Callable[[], str]:
    numbers = itertools.count()
    return lambda: f"sqlite:///{tmp_path}/{next(numbers)}.db"


@pytest.mark.real
@pytest.mark.parametrize("live", [life, refusing])
def test_killed_at_every_statement(new_file: Callable[[], str], live: Life) -> None:
    assert kill_everywhere(new_file, live) > 50


@pytest.mark.real
def test_killed_at_every_packet_to_mariadb(maria: MariaDb) -> None:
    """Of those that are sent once the queue is there: the migrations have a test of their own."""
    database = maria.new_database()
    Brook(maria.url(database)).close()

    def new_url() -> str:
        maria.empty_queue(database)
        return maria.url(database)

    assert kill_everywhere(new_url, refusing) > 30


@pytest.mark.real
@pytest.mark.parametrize("live", [boast, piecemeal, ack_unseen])
def test_the_audit_sees_what_is_wrong(new_file: Callable[[], str], live: Life) -> None:
    with pytest.raises(AssertionError):
        kill_everywhere(new_file, live)


PRODUCER = """
import sys
from brook import Brook
url, name = sys.argv[1:]
with Brook(url, patience=60) as mq:
    for n in range(10**9):
        first = mq.append([name] * 3, [b"%d" % (3 * n + k) for k in range(3)])[0]
        print(first, flush=True)
"""

CONSUMER = """
import sys
from brook import Brook
with Brook(sys.argv[1], patience=60) as mq:
    while True:
        batch = mq.receive("g", max_messages=7, wait=60)
        rows = zip(batch.topics, batch.offsets, batch.redelivered)
        text = " ".join(f"{topic}:{offset}:{int(again)}" for topic, offset, again in rows)
        print("got", text, flush=True)
        mq.ack(batch)
        print("acked", text, flush=True)
"""


Process = subprocess.Popen[str]


@pytest.fixture
def start() -> Iterator[Callable[..., Process]]:
    """Start a script; a small pipe keeps it from running far ahead of who reads what it says."""
    with contextlib.ExitStack() as stack:

        def start_one(script: str, *arguments: str) -> Process:
            command = [sys.executable, "-c", script, *arguments]
            process = stack.enter_context(subprocess.Popen(command, stdout=-1, text=True, pipesize=4096))
            stack.callback(process.kill)
            return process

        yield start_one


def read_lines(process: Process, count: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline() for _ in range(count)]


def kill(process: Process) -> list[str]:
    """And what it has said that nobody has read yet; a line that is not whole was not said."""
    process.kill()
    rest, _ = process.communicate()
    return [line for line in rest.splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.real
def test_producers_killed_at_random(url: str, start: Callable[..., Process]) -> None:
    chance = random.Random(1)
    acked: dict[str, int] = {}
    for life_number in range(3):
        producers = {f"p{life_number}{n}": start(PRODUCER, url, f"p{life_number}{n}") for n in range(2)}
        for name, process in producers.items():
            said = read_lines(process, chance.randrange(20, 60))
            acked[name] = 3 * len(said + kill(process))
    with Brook(url) as mq:
        mq.subscribe("audit")
        found = defaultdict(list)
        while batch := mq.receive("audit"):
            for message in batch.messages:
                found[message.topic].append((message.offset, message.body))
            mq.ack(batch)
    for name, count in acked.items():
        assert found[name] == [(n, b"%d" % n) for n in range(len(found[name]))], "a gap, or half a batch"
        assert count <= len(found[name]) <= count + 3, "an acked message is lost, or more was stored than sent"


@pytest.mark.real
def test_consumers_killed_at_random(url: str, start: Callable[..., Process]) -> None:
    chance, total = random.Random(2), 10_000
    with Brook(url) as mq:
        topics = mq.create_topics(["a", "b", "c"])
        mq.append([topics[n % 3] for n in range(total)], [b"x"] * total)
        mq.subscribe("g")
    said: list[str] = []
    for _ in range(4):
        consumers = [start(CONSUMER, url) for _ in range(2)]
        for process in consumers:
            said += read_lines(process, chance.randrange(10, 40)) + kill(process)
    assert len(said) < total / 7, "nothing was left to be killed over"
    with Brook(url) as mq:
        while batch := mq.receive("g", max_messages=500):
            rows = zip(batch.topics, batch.offsets, batch.redelivered, strict=True)
            said.append("got " + " ".join(f"{t}:{o}:{int(again)}" for t, o, again in rows))
            mq.ack(batch)
        assert mq.lag("g") == 0
    deliveries = [item.rsplit(":", 1) for line in said if line.startswith("got") for item in line.split()[1:]]
    times, firsts = Counter(m for m, _ in deliveries), Counter(m for m, again in deliveries if again == "0")
    acked = Counter(item.rsplit(":", 1)[0] for line in said if line.startswith("acked") for item in line.split()[1:])
    assert len(times) == total, "messages were skipped"
    assert set(acked.values()) == {1}, "acked messages came again"
    assert max(firsts.values()) == 1, "a repeat was not flagged"
    assert sum(times.values()) - total <= 8 * 7, "more came twice than was in flight"

"""A cluster of three real nodes: conflicts are tried again, and a node that is killed takes nothing with it."""

import shutil
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest
from servers import Galera, wait_until

from brook import Brook, BrookError, Message, Refused

pytestmark = pytest.mark.real

PATIENCE = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Galera]:
    # Not one of pytest's, which root alone can look into.
    directory = Path(tempfile.mkdtemp(prefix="brook-galera-"))
    directory.chmod(0o755)
    nodes = Galera(directory)
    try:
        nodes.start()
        nodes.nodes[0].ask("CREATE DATABASE q")
        yield nodes
    finally:
        nodes.kill()
        shutil.rmtree(directory)


def conflicts(cluster: Galera) -> int:
    """How often a node has undone a transaction of its own because of another's."""
    names = "('wsrep_local_cert_failures', 'wsrep_local_bf_aborts')"
    counts = [node.ask(f"SHOW STATUS WHERE Variable_name IN {names}") for node in cluster.nodes]
    return sum(int(value) for rows in counts for _, value in rows)


def in_threads(jobs: Collection[threading.Thread]) -> None:
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()


def until_they_conflict(cluster: Galera, work: Callable[[int], None]) -> int:
    """How many rounds of work that was: most often one, but two nodes may happen to take turns."""
    before = conflicts(cluster)
    for rounds in range(1, 11):
        work(rounds)
        if conflicts(cluster) > before:
            return rounds
    raise AssertionError("there was nothing to be tried again")


def test_conflicts_between_nodes_are_tried_again(cluster: Galera) -> None:
    offsets, got, lock = list[int](), list[int](), threading.Lock()
    clients = [Brook(cluster.url("q", node), patience=PATIENCE) for node in range(3)]
    clients[0].create_topics(["t"])
    clients[0].subscribe("g", ["t"])

    def send(mq: Brook) -> None:
        for _ in range(25):
            found = mq.append(["t"] * 2, [b"x"] * 2)
            with lock:
                offsets.extend(found)

    def receive(mq: Brook, rounds: int) -> None:
        while len(got) < 150 * rounds:
            batch = mq.receive("g", max_messages=4)
            mq.ack(batch)
            with lock:
                got.extend(batch.offsets)

    def work(rounds: int) -> None:
        senders = [threading.Thread(target=send, args=(mq,)) for mq in clients]
        in_threads([*senders, *(threading.Thread(target=receive, args=(mq, rounds)) for mq in clients)])

    rounds = until_they_conflict(cluster, work)
    for mq in clients:
        mq.close()
    assert sorted(offsets) == sorted(got) == list(range(150 * rounds)), "an offset repeats or is missing, or came twice"


def test_what_is_undone_because_of_another_node_is_undone_whole(cluster: Galera) -> None:
    topics = [f"whole-{number:02d}" for number in range(16)]
    firsts, failures = list[tuple[str, int]](), list[BrookError]()
    clients = [Brook(cluster.url("q", node), patience=PATIENCE) for node in range(3)]
    clients[0].create_topics(topics)

    def send(mq: Brook) -> None:
        try:
            for _ in range(60):
                firsts.extend(zip(topics, mq.append(topics, [b"x"] * len(topics)), strict=True))
        except BrookError as failure:
            failures.append(failure)

    rounds = until_they_conflict(
        cluster, lambda rounds: in_threads([threading.Thread(target=send, args=(mq,)) for mq in clients])
    )
    for mq in clients:
        mq.close()
    assert failures == [], "half of an append was stored, and is in the way"
    assert sorted(firsts) == [(topic, offset) for topic in topics for offset in range(180 * rounds)]
    assert cluster.nodes[0].ask("SELECT id FROM q.brook_body WHERE id NOT IN (SELECT body FROM q.brook_run)") == []


def audit(acked: Collection[bytes], unknown: Collection[bytes], got: dict[int, bytes]) -> None:
    """What was acked has come, once and in a dense order; and nothing but that and what nobody can tell."""
    assert sorted(got) == list(range(len(got))), "offsets are not dense"
    assert len(set(got.values())) == len(got), "something was stored twice"
    assert set(acked) <= set(got.values()), "something that was acked is lost"
    assert set(got.values()) <= {*acked, *unknown}, "something came that was refused, or never sent"


def test_a_node_killed_in_the_middle(cluster: Galera) -> None:
    acked, unknown, got = set[bytes](), set[bytes](), dict[int, bytes]()
    stop = threading.Event()

    def send(mq: Brook, name: int) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            body = b"%d/%d" % (name, number)
            try:
                mq.send("u", body)
                acked.add(body)
            except Refused:
                continue
            except BrookError:
                unknown.add(body)

    senders = [Brook(cluster.url("q", node), patience=PATIENCE) for node in (0, 1)]
    with Brook(cluster.url("q"), patience=PATIENCE, lease=3.0) as consumer:

        @consumer.consumer("u", group="h", threads=2, batch=5, ladder=[0.01])
        def note(messages: list[Message]) -> None:
            got.update((message.offset, message.body) for message in messages)

        threads = [threading.Thread(target=send, args=(mq, n)) for n, mq in enumerate(senders)]
        for thread in threads:
            thread.start()
        try:
            wait_until(lambda: len(acked) > 30 and len(got) > 10, "sends and receives")
            cluster.nodes[0].server.kill()
            before = len(acked)
            wait_until(lambda: len(acked) > before + 60, "sends to go on")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        wait_until(lambda: consumer.lag("h") == 0, "receives to go on")
        end = len(consumer.query("u", limit=10**6))
        wait_until(lambda: len(got) == end, "the last of the handlers")
    for mq in senders:
        mq.close()
    audit(acked, unknown, got)


@pytest.mark.parametrize(
    ("acked", "got", "says"),
    [
        ([b"a", b"b"], {0: b"a"}, "lost"),
        ([b"a"], {0: b"a", 2: b"b"}, "not dense"),
        ([b"a"], {0: b"a", 1: b"a"}, "stored twice"),
        ([b"a"], {0: b"a", 1: b"c"}, "never sent"),
    ],
)
def test_the_audit_sees_what_is_wrong(acked: list[bytes], got: dict[int, bytes], says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        audit(acked, [b"b"], got)

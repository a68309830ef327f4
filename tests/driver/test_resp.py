"""The driver of Redis Streams against a real server, against redis-py, and against servers that misbehave."""

import select
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import redis

from ackworth.broker.redis_streams import RedisStreams
from ackworth.driver import resp
from ackworth.driver.codec.resp import bulk
from ackworth.driver.contract import Address, Answers, ConnectionLost, Incoming, Outgoing, Waitable
from ackworth.load.body import Bodies
from ackworth.model.outcome import Outcome
from ackworth.testing import drivers
from ackworth.testing.drivers import GROUPS, TOPICS, check_driver
from ackworth.testing.nodes import Running, fresh_addresses, running


@pytest.fixture
def server(tmp_path: Path, redis_streams: RedisStreams) -> Iterator[Running]:
    with running(redis_streams, tmp_path, appendonly="off") as found:
        resp.prepare(found.address, TOPICS, GROUPS)
        yield found


@pytest.fixture
def client(server: Running) -> Iterator[redis.Redis]:
    with redis.Redis(**server.address) as found:
        yield found


def batch(first: int, count: int, size: int = 100) -> Outgoing:
    topics, sizes = np.arange(first, first + count) % len(TOPICS), np.full(count, size)
    return Outgoing(first, topics, Bodies(drivers.RUN).build(0, topics, first, sizes, 1), sizes)


def all_answers(sender: resp.Sender, count: int) -> list[Answers]:
    found: list[Answers] = []
    while sum(map(len, found)) < count:
        found.append(sender.answers(drivers.PATIENCE))
        assert len(found[-1])
    return found


def seqs(incoming: Incoming | None) -> list[int]:
    assert incoming is not None
    checked = Bodies(drivers.RUN).check(incoming.bodies, incoming.lengths)
    assert checked.intact.all()
    return sorted(checked.seq.tolist())


@pytest.mark.real
def test_it_keeps_every_promise(tmp_path: Path, redis_streams: RedisStreams) -> None:
    with fresh_addresses(redis_streams, tmp_path, appendonly="off") as fresh:
        check_driver(resp, fresh)


@pytest.mark.real
def test_redis_py_reads_what_we_send(server: Running, client: redis.Redis) -> None:
    sender = resp.Sender(server.address, TOPICS, 0)
    sent = batch(0, 300)
    sender.send(sent)
    all_answers(sender, 300)
    for i, topic in enumerate(TOPICS):
        bodies = [fields[b"b"] for _, fields in client.xrange(topic)]
        assert bodies == [row.tobytes()[:100] for row in sent.bodies[i :: len(TOPICS)]]
    sender.close()


@pytest.mark.real
def test_we_read_what_redis_py_sends_and_it_sees_our_acknowledgements(server: Running, client: redis.Redis) -> None:
    sent = batch(0, 30)
    names = [client.xadd(TOPICS[i % 3], {"b": row.tobytes()[:100]}) for i, row in enumerate(sent.bodies)]
    receiver = resp.Receiver(server.address, TOPICS, GROUPS[0], 0)
    incoming = receiver.receive(100, drivers.PATIENCE)
    assert seqs(incoming) == list(range(30)) and incoming is not None
    millis, count = (int(part) for part in names[0].split(b"-"))
    assert incoming.positions[0] == (millis << 20) + count
    assert [client.xpending(topic, GROUPS[0])["pending"] for topic in TOPICS] == [10, 10, 10]
    receiver.acknowledge(incoming)
    assert [client.xpending(topic, GROUPS[0])["pending"] for topic in TOPICS] == [0, 0, 0]
    receiver.close()


@pytest.mark.real
def test_what_a_consumer_left_behind_for_long_is_adopted(
    server: Running, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resp, "_ADOPT_AFTER_MS", 0)
    monkeypatch.setattr(resp, "_STAY_MS", 10)
    row = batch(7, 1).bodies[0].tobytes()[:100]
    client.xadd(TOPICS[1], {"b": row})
    client.xreadgroup(GROUPS[0], "gone-for-good", {TOPICS[1]: ">"})
    receiver = resp.Receiver(server.address, TOPICS, GROUPS[0], 0)
    incoming = receiver.receive(100, drivers.PATIENCE)
    assert seqs(incoming) == [7] and incoming is not None and incoming.redelivered.all()
    receiver.acknowledge(incoming)
    assert receiver.receive(100, 0.1) is None
    receiver.close()


@pytest.mark.real
def test_a_message_that_was_deleted_meanwhile_does_not_come_for_ever(server: Running, client: redis.Redis) -> None:
    name = client.xadd(TOPICS[0], {"b": "x"})
    client.xreadgroup(GROUPS[0], "consumer-0", {TOPICS[0]: ">"})
    client.xdel(TOPICS[0], name)
    receiver = resp.Receiver(server.address, TOPICS, GROUPS[0], 0)
    assert receiver.receive(100, 0.2) is None
    assert client.xpending(TOPICS[0], GROUPS[0])["pending"] == 0
    receiver.close()


@pytest.mark.real
def test_real_refusals_are_refused_and_leave_nothing(server: Running, client: redis.Redis) -> None:
    client.set("no-stream", "x")
    client.config_set("maxmemory", "1")
    sender = resp.Sender(server.address, [*TOPICS, "no-stream"], 0)
    sender.send(batch(0, 9))
    assert reasons(all_answers(sender, 9)) == {(Outcome.REFUSED, resp.DEFINITE["OOM"])}
    client.config_set("maxmemory", "0")
    wrong = batch(9, 3)
    sender.send(Outgoing(9, np.full(3, 3), wrong.bodies, wrong.sizes))
    assert reasons(all_answers(sender, 3)) == {(Outcome.REFUSED, resp.DEFINITE["WRONGTYPE"])}
    sender.close()
    assert [client.xlen(topic) for topic in TOPICS] == [0, 0, 0]


@pytest.mark.real
def test_a_worker_can_sleep_until_something_comes(server: Running) -> None:
    sender = resp.Sender(server.address, TOPICS, 0)
    receiver = resp.Receiver(server.address, TOPICS, GROUPS[0], 0)
    assert receiver.receive(10, 0) is None and isinstance(receiver, Waitable)
    sender.send(batch(0, 1))
    assert isinstance(sender, Waitable)
    assert select.select([sender], [], [], drivers.PATIENCE)[0] == [sender]
    while (incoming := receiver.receive(10, 0)) is None:
        assert select.select([receiver], [], [], drivers.PATIENCE)[0] == [receiver]
    assert seqs(incoming) == [0]
    sender.close()
    receiver.close()


# ---- servers that misbehave --------------------------------------------------------------------------------


def reasons(found: list[Answers]) -> set[tuple[int, str]]:
    return {(o, resp.REASONS[r]) for a in found for o, r in zip(a.outcomes.tolist(), a.reasons.tolist(), strict=True)}


@pytest.fixture
def says() -> Iterator[Callable[..., Address]]:
    """A server that answers PING, and then whatever it is asked with these bytes; then it hangs up."""
    threads: list[threading.Thread] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(words: bytes) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(100)
            connection.sendall(b"+PONG\r\n")
            connection.recv(100)
            connection.sendall(words)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 16):
                pass

    def start(words: bytes) -> Address:
        threads.append(threading.Thread(target=serve, args=(words,)))
        threads[-1].start()
        return {"host": "127.0.0.1", "port": listener.getsockname()[1]}

    yield start
    for thread in threads:
        thread.join()
    listener.close()


ACK = bulk(b"1731716255123-0")


@pytest.mark.parametrize("code", resp.DEFINITE)
def test_a_definite_no_is_refused_and_the_next_answer_counts(says: Callable[..., Address], code: str) -> None:
    sender = resp.Sender(says(ACK + f"-{code} it says\r\n".encode() + ACK), TOPICS, 0)
    sender.send(batch(5, 3))
    found = all_answers(sender, 3)
    assert np.concatenate([a.seqs for a in found]).tolist() == [5, 6, 7]
    assert np.concatenate([a.outcomes for a in found]).tolist() == [Outcome.ACKED, Outcome.REFUSED, Outcome.ACKED]
    assert (Outcome.REFUSED, resp.DEFINITE[code]) in reasons(found)
    sender.close()


@pytest.mark.parametrize("words", [b"-ERR something\r\n", b"-BUSY a script\r\n", b":1\r\n", b"*0\r\n", b"$-1\r\n"])
def test_whatever_else_it_says_is_unknown(says: Callable[..., Address], words: bytes) -> None:
    sender = resp.Sender(says(words), TOPICS, 0)
    sender.send(batch(0, 1))
    assert reasons(all_answers(sender, 1)) == {(Outcome.UNKNOWN, "an error that may mean anything")}
    sender.close()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (b"", "the connection broke"),
        (ACK + ACK[:9], "the connection broke"),  # it dies in the middle of a frame
        (b"HTTP/1.1 400 Bad Request\r\n", "an answer that is no RESP"),
        (ACK * 4, "an answer that is no RESP"),  # more answers than questions
    ],
)
def test_a_broken_connection_is_lost(says: Callable[..., Address], words: bytes, reason: str) -> None:
    sender = resp.Sender(says(words), TOPICS, 0)
    sender.send(batch(0, 3))
    with pytest.raises(ConnectionLost) as lost:
        while True:
            sender.answers(drivers.PATIENCE)
    assert resp.REASONS[lost.value.reason] == reason
    sender.close()


@pytest.mark.parametrize("words", [b"*1\r\n*2\r\n$1\r\n", b"-NOGROUP none\r\n", b"*1\r\n:7\r\n", b"+OK\r\n"])
def test_a_receiver_of_a_broken_connection_is_lost(says: Callable[..., Address], words: bytes) -> None:
    receiver = resp.Receiver(says(words), TOPICS, GROUPS[0], 0)
    with pytest.raises(ConnectionLost):
        receiver.receive(10, drivers.PATIENCE)
    receiver.close()


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ConnectionLost, match=f"127.0.0.1:{port}: Connection refused"):
        resp.prepare({"host": "127.0.0.1", "port": port}, TOPICS, GROUPS)


def test_a_server_that_is_still_loading_is_not_ready() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(100)
                connection.sendall(b"-LOADING Redis is loading the dataset in memory\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(ConnectionLost, match="LOADING"):
            resp.Sender({"host": "127.0.0.1", "port": listener.getsockname()[1]}, TOPICS, 0)
        thread.join()

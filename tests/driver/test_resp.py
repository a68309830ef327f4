"""The driver of Redis Streams against a real server, against redis-py, and against servers that misbehave."""

import contextlib
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import redis

from ackworth.broker.redis_streams import RedisStreams
from ackworth.driver import resp
from ackworth.driver.codec.resp import bulk
from ackworth.driver.contract import Address, ConnectionLost, Outgoing
from ackworth.model.outcome import Outcome
from ackworth.testing import drivers
from ackworth.testing.drivers import GROUPS, TOPICS, check_driver
from ackworth.testing.nodes import Running, fresh_addresses, running
from tests.driver import scripted
from tests.driver.messages import (
    all_answers,
    assert_forgets_what_a_server_said_before_it_stalled,
    batch,
    body,
    reasons,
    seqs,
    until_lost,
)


@pytest.fixture
def server(tmp_path: Path, redis_streams: RedisStreams) -> Iterator[Running]:
    with running(redis_streams, tmp_path, appendonly="off") as found:
        resp.prepare(found.address, TOPICS, GROUPS)
        yield found


@pytest.fixture
def client(server: Running) -> Iterator[redis.Redis]:
    with redis.Redis(**server.address) as found:
        yield found


@pytest.mark.real
def test_it_keeps_every_promise(tmp_path: Path, redis_streams: RedisStreams) -> None:
    with fresh_addresses(redis_streams, tmp_path, appendonly="off") as fresh:
        check_driver(resp, fresh)


@pytest.mark.real
@pytest.mark.parametrize("part", ["Sender", "Receiver"])
def test_the_suite_notices_one_that_nothing_wakes(server: Running, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    silent, other = socket.socketpair()
    with silent, other:
        monkeypatch.setattr(getattr(resp, part), "fileno", lambda self: silent.fileno())
        monkeypatch.setattr(drivers, "PATIENCE", 1.0)
        with pytest.raises(AssertionError, match=f"a {part.lower()} is not woken"):
            drivers.whoever_sleeps_is_woken(resp, server.address)


@pytest.mark.real
def test_what_a_server_that_stalls_said_before_counts_no_more(server: Running) -> None:
    with contextlib.closing(resp.Receiver(server.address, TOPICS, GROUPS[0], 0)) as receiver:
        assert_forgets_what_a_server_said_before_it_stalled(receiver, server.node)


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
    client.xadd(TOPICS[1], {"b": body(7)})
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
    while client.xpending(TOPICS[0], GROUPS[0])["pending"]:
        assert receiver.receive(100, 0.05) is None
    receiver.close()


@pytest.mark.real
def test_real_refusals_are_refused_and_leave_nothing(server: Running, client: redis.Redis) -> None:
    client.set("no-stream", "x")
    client.config_set("maxmemory", "1")
    sender = resp.Sender(server.address, [*TOPICS, "no-stream"], 0)
    sender.send(batch(0, 9))
    assert reasons(resp, all_answers(sender, 9)) == {(Outcome.REFUSED, resp.DEFINITE["OOM"])}
    client.config_set("maxmemory", "0")
    wrong = batch(9, 3)
    sender.send(Outgoing(9, np.full(3, 3), wrong.bodies, wrong.sizes))
    assert reasons(resp, all_answers(sender, 3)) == {(Outcome.REFUSED, resp.DEFINITE["WRONGTYPE"])}
    sender.close()
    assert [client.xlen(topic) for topic in TOPICS] == [0, 0, 0]


@pytest.mark.real
def test_what_is_sent_while_a_script_runs_is_refused_and_leaves_nothing(server: Running, client: redis.Redis) -> None:
    client.config_set("busy-reply-threshold", "1")  # milliseconds
    with (
        ThreadPoolExecutor() as pool,
        redis.Redis(**server.address) as other,
        contextlib.closing(resp.Sender(server.address, TOPICS, 0)) as sender,
    ):
        script = pool.submit(client.eval, "while true do end", 0)
        taken, said = -1, {(Outcome.ACKED, "")}
        while said == {(Outcome.ACKED, "")}:  # it has not begun yet
            taken += 1
            sender.send(batch(taken, 1))
            said = reasons(resp, all_answers(sender, 1))
        other.script_kill()
        assert isinstance(script.exception(), redis.ResponseError)
        assert said == {(Outcome.REFUSED, resp.DEFINITE["BUSY"])}
        assert sum(other.xlen(topic) for topic in TOPICS) == taken


# ---- servers that misbehave --------------------------------------------------------------------------------


Says = Callable[[bytes], Address]


@pytest.fixture
def says() -> Iterator[Says]:
    """A server that answers PING, and then whatever it is asked with these bytes; then it hangs up."""
    with contextlib.ExitStack() as stack:
        yield lambda words: stack.enter_context(scripted.says((b"PING", b"+PONG\r\n"), (b"\r\n*", words)))


ACK = bulk(b"1731716255123-0")


@pytest.mark.parametrize("code", resp.DEFINITE)
def test_a_definite_no_is_refused_and_the_next_answer_counts(says: Says, code: str) -> None:
    sender = resp.Sender(says(ACK + f"-{code} it says\r\n".encode() + ACK), TOPICS, 0)
    sender.send(batch(5, 3))
    found = all_answers(sender, 3)
    assert np.concatenate([a.seqs for a in found]).tolist() == [5, 6, 7]
    assert np.concatenate([a.outcomes for a in found]).tolist() == [Outcome.ACKED, Outcome.REFUSED, Outcome.ACKED]
    assert (Outcome.REFUSED, resp.DEFINITE[code]) in reasons(resp, found)
    sender.close()


@pytest.mark.parametrize("words", [b"-ERR something\r\n", b":1\r\n", b"*0\r\n", b"$-1\r\n"])
def test_whatever_else_it_says_is_unknown(says: Says, words: bytes) -> None:
    sender = resp.Sender(says(words), TOPICS, 0)
    sender.send(batch(0, 1))
    assert reasons(resp, all_answers(sender, 1)) == {(Outcome.UNKNOWN, "an error that may mean anything")}
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
def test_a_broken_connection_is_lost(says: Says, words: bytes, reason: str) -> None:
    sender = resp.Sender(says(words), TOPICS, 0)
    sender.send(batch(0, 3))
    with pytest.raises(ConnectionLost) as lost:
        while True:
            sender.answers(drivers.PATIENCE)
    assert resp.REASONS[lost.value.reason] == reason
    sender.close()


def test_what_was_acked_before_the_end_is_acked(says: Says) -> None:
    sender = resp.Sender(says(ACK * 2 + b"what?\r\n"), TOPICS, 0)
    sender.send(batch(0, 3))
    found, lost = until_lost(sender)
    assert found == dict.fromkeys(range(2), Outcome.ACKED) and "cannot begin with" in str(lost)
    sender.close()


def test_a_stream_that_was_not_asked_for_is_no_topic(says: Says) -> None:
    foreign = b"*1\r\n*2\r\n$7\r\nforeign\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nb\r\n$1\r\nx\r\n"
    receiver = resp.Receiver(says(foreign), TOPICS, GROUPS[0], 0)
    with pytest.raises(ConnectionLost, match="foreign is no topic"):
        receiver.receive(10, drivers.PATIENCE)
    receiver.close()


@pytest.mark.parametrize("words", [b"*1\r\n*2\r\n$1\r\n", b"-NOGROUP none\r\n", b"*1\r\n:7\r\n", b"+OK\r\n"])
def test_a_receiver_of_a_broken_connection_is_lost(says: Says, words: bytes) -> None:
    receiver = resp.Receiver(says(words), TOPICS, GROUPS[0], 0)
    with pytest.raises(ConnectionLost):
        receiver.receive(10, drivers.PATIENCE)
    receiver.close()


def test_a_server_that_answers_no_request_for_long_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its machine may have lost its power: then nobody says that the connection is over."""
    monkeypatch.setattr(resp, "_ANSWER_WITHIN", 0.2)
    monkeypatch.setattr(resp, "_STAY_MS", 10)
    with scripted.says((b"PING", b"+PONG\r\n"), (b"what is never said", b"")) as address:
        receiver = resp.Receiver(address, TOPICS, GROUPS[0], 0)
        with contextlib.closing(receiver), pytest.raises(ConnectionLost, match="no answer within"):
            while True:
                assert receiver.receive(10, 0.01) is None


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ConnectionLost, match=f"127.0.0.1:{port}: Connection refused"):
        resp.prepare({"host": "127.0.0.1", "port": port}, TOPICS, GROUPS)


@pytest.mark.parametrize("said", [b"-NOPERM no\r\n", b"what?\r\n"])
def test_a_server_that_makes_no_groups_is_not_ready_and_nothing_is_left_open(says: Says, said: bytes) -> None:
    with pytest.raises(ConnectionLost):
        resp.prepare(says(said), TOPICS[:1], GROUPS[:1])


def test_a_server_that_is_still_loading_is_not_ready() -> None:
    loading = b"-LOADING Redis is loading the dataset in memory\r\n"
    with scripted.says((b"PING", loading)) as address, pytest.raises(ConnectionLost, match="LOADING"):
        resp.Sender(address, TOPICS, 0)

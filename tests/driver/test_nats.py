"""The driver of NATS JetStream against a real server, against nats-py, and against servers that misbehave."""

import asyncio
import contextlib
import re
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import nats as nats_py
import numpy as np
import pytest
from nats.js import JetStreamContext

from ackworth.broker.nats_jetstream import BROKER, STREAM, NatsJetStream
from ackworth.driver import nats
from ackworth.driver.contract import Address, ConnectionLost
from ackworth.model.outcome import Outcome
from ackworth.testing import drivers
from ackworth.testing.drivers import GROUPS, TOPICS, check_driver
from ackworth.testing.nodes import Running, fresh_addresses, running
from tests.conftest import had
from tests.driver import scripted
from tests.driver.messages import (
    all_answers,
    assert_forgets_what_a_server_said_before_it_stalled,
    batch,
    body,
    outcomes,
    reasons,
    seqs,
    until_lost,
)

INFO = b"", b'INFO {"version": "2"}\r\n'
T = Callable[[JetStreamContext], Awaitable[object]]


@pytest.fixture
def broker() -> NatsJetStream:
    return had(BROKER)


@pytest.fixture
def server(tmp_path: Path, broker: NatsJetStream) -> Iterator[Running]:
    with running(broker, tmp_path) as found:
        nats.prepare(found.address, TOPICS, GROUPS)
        yield found


def with_nats_py(address: Address, use: T) -> object:
    """What somebody does who uses nats-py."""

    async def session() -> object:
        client = await nats_py.connect(f"nats://{address['host']}:{address['port']}")
        try:
            return await use(client.jetstream())
        finally:
            await client.close()

    return asyncio.run(session())


@pytest.mark.real
def test_it_keeps_every_promise(tmp_path: Path, broker: NatsJetStream) -> None:
    with fresh_addresses(broker, tmp_path) as fresh:
        check_driver(nats, fresh)


@pytest.mark.real
def test_nats_py_reads_what_we_send(server: Running) -> None:
    sent = batch(0, 300)
    with contextlib.closing(nats.Sender(server.address, TOPICS, 0)) as sender:
        sender.send(sent)
        assert outcomes(all_answers(sender, 300)) == dict.fromkeys(range(300), Outcome.ACKED)

    async def read(jetstream: JetStreamContext) -> list[tuple[str, bytes]]:
        subscription = await jetstream.pull_subscribe("", GROUPS[0], STREAM)
        return [(message.subject, message.data) for message in await subscription.fetch(300)]

    rows = [row.tobytes()[:100] for row in sent.bodies]
    assert with_nats_py(server.address, read) == [(f"{STREAM}.{TOPICS[i % 3]}", row) for i, row in enumerate(rows)]


@pytest.mark.real
def test_we_read_what_nats_py_sends_and_it_sees_our_acknowledgements(server: Running) -> None:
    async def send(jetstream: JetStreamContext) -> list[int]:
        return [(await jetstream.publish(f"{STREAM}.{TOPICS[i % 3]}", body(i))).seq for i in range(30)]

    async def state(jetstream: JetStreamContext) -> tuple[int | None, int | None]:
        info = await jetstream.consumer_info(STREAM, GROUPS[0])
        return info.num_ack_pending, info.num_pending

    places = with_nats_py(server.address, send)
    with contextlib.closing(nats.Receiver(server.address, TOPICS, GROUPS[0], 0)) as receiver:
        found = []
        while sum(map(len, found)) < 30:
            incoming = receiver.receive(30, drivers.PATIENCE)
            assert incoming is not None
            found.append(incoming)
        assert [seq for incoming in found for seq in seqs(incoming)] == list(range(30))
        assert np.concatenate([incoming.positions for incoming in found]).tolist() == places
        assert with_nats_py(server.address, state) == (30, 0)
        for incoming in found:
            receiver.acknowledge(incoming)
        while not receiver.told_empty:
            assert receiver.receive(30, 0.1) is None
        assert with_nats_py(server.address, state) == (0, 0)


@pytest.mark.real
def test_nothing_is_said_to_be_left_while_somebody_has_something(server: Running) -> None:
    with contextlib.closing(nats.Sender(server.address, TOPICS, 0)) as sender:
        sender.send(batch(0, 1))
        all_answers(sender, 1)
    with (
        contextlib.closing(nats.Receiver(server.address, TOPICS, GROUPS[0], 0)) as one,
        contextlib.closing(nats.Receiver(server.address, TOPICS, GROUPS[0], 1)) as other,
    ):
        incoming = one.receive(10, drivers.PATIENCE)
        assert incoming is not None
        assert other.receive(10, 4 * nats._STAY) is None and not other.told_empty
        one.acknowledge(incoming)
        while not other.told_empty:
            assert other.receive(10, nats._STAY) is None


@pytest.mark.real
def test_what_a_server_that_stalls_said_before_counts_no_more(server: Running) -> None:
    with contextlib.closing(nats.Receiver(server.address, TOPICS, GROUPS[0], 0)) as receiver:
        assert_forgets_what_a_server_said_before_it_stalled(receiver, server.node)


@pytest.mark.real
def test_what_one_that_died_had_comes_again(
    tmp_path: Path, broker: NatsJetStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats, "_AGAIN_AFTER", 0.5)
    with running(broker, tmp_path) as server:
        nats.prepare(server.address, TOPICS, GROUPS)
        with contextlib.closing(nats.Sender(server.address, TOPICS, 0)) as sender:
            sender.send(batch(7, 1))
            all_answers(sender, 1)
        dead = nats.Receiver(server.address, TOPICS, GROUPS[0], 0)
        assert seqs(dead.receive(1, drivers.PATIENCE)) == [7]
        dead._connection.close()
        with contextlib.closing(nats.Receiver(server.address, TOPICS, GROUPS[0], 1)) as receiver:
            incoming = receiver.receive(1, drivers.PATIENCE)
            assert seqs(incoming) == [7] and incoming is not None and incoming.redelivered.all()
            receiver.acknowledge(incoming)


@pytest.mark.real
def test_real_refusals_are_refused_and_leave_nothing(server: Running) -> None:
    async def limit(jetstream: JetStreamContext) -> None:
        info = await jetstream.stream_info(STREAM)
        await jetstream.update_stream(info.config, max_msg_size=120, max_msgs=3, discard="new")

    async def count(jetstream: JetStreamContext) -> int:
        return (await jetstream.stream_info(STREAM)).state.messages

    with_nats_py(server.address, limit)
    with contextlib.closing(nats.Sender(server.address, TOPICS, 0)) as sender:
        sender.send(batch(0, 5, size=200))
        assert reasons(nats, all_answers(sender, 5)) == {(Outcome.REFUSED, "larger than the stream allows")}
        sender.send(batch(5, 5))
        found = all_answers(sender, 5)
        assert [outcomes(found)[seq] for seq in range(5, 10)] == [Outcome.ACKED] * 3 + [Outcome.REFUSED] * 2
        assert (Outcome.REFUSED, "the stream is full (messages)") in reasons(nats, found)
    assert with_nats_py(server.address, count) == 3


@pytest.mark.real
def test_without_a_stream_a_message_is_refused(tmp_path: Path, broker: NatsJetStream) -> None:
    with running(broker, tmp_path) as server:
        with contextlib.closing(nats.Sender(server.address, TOPICS, 0)) as sender:
            sender.send(batch(0, 9))
            found = all_answers(sender, 9)
            assert reasons(nats, found) == {(Outcome.REFUSED, "no stream takes it (503)")}
            assert sorted(outcomes(found)) == list(range(9))
        with pytest.raises(ConnectionLost, match="stream not found"):
            nats.Receiver(server.address, TOPICS, GROUPS[0], 0)


# ---- servers that misbehave --------------------------------------------------------------------------------

Says = Callable[..., Address]
ACK = b'{"stream":"ackworth", "seq":7}'


def answer(seq: int, said: bytes) -> bytes:
    return b"MSG _ACK.IDENTITY.%012d 1  %d\r\n%b\r\n" % (seq, len(said), said)


@pytest.fixture
def says() -> Iterator[Says]:
    """A server that lets one in, says these words in turn as one publishes to these subjects, and hangs up."""

    def to_inbox(words: bytes) -> Callable[[bytes], bytes]:
        return lambda heard: words.replace(b"IDENTITY", re.findall(rb"_ACK\.(\w+)", heard)[0])

    def start(*steps: tuple[bytes, bytes]) -> Address:
        then = [(b"PUB " + subject, to_inbox(words)) for subject, words in steps]
        return {**stack.enter_context(scripted.says(INFO, (b"PING", b"PONG\r\n"), *then)), "stream": STREAM}

    with contextlib.ExitStack() as stack:
        yield start


@pytest.mark.parametrize("why", [text for text in nats.DEFINITE if text != nats.NO_STREAM])
def test_a_definite_no_is_refused_and_the_next_answer_counts(says: Says, why: str) -> None:
    no = b'{"error":{"code":400,"description":"%b"},"stream":"ackworth","seq":0}' % why.encode()
    with contextlib.closing(
        nats.Sender(says((b"", answer(7, ACK) + answer(5, no) + answer(6, ACK))), TOPICS, 0)
    ) as sender:
        sender.send(batch(5, 3))
        found = all_answers(sender, 3)
        assert outcomes(found) == {5: Outcome.REFUSED, 6: Outcome.ACKED, 7: Outcome.ACKED}
        assert (Outcome.REFUSED, nats.DEFINITE[why]) in reasons(nats, found)


def test_whatever_else_it_says_is_unknown(says: Says) -> None:
    no = b'{"error":{"code":500,"description":"write error: no space left on device"},"seq":0}'
    with contextlib.closing(nats.Sender(says((b"", answer(0, no))), TOPICS, 0)) as sender:
        sender.send(batch(0, 1))
        assert reasons(nats, all_answers(sender, 1)) == {(Outcome.UNKNOWN, "an error that may mean anything")}


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (b"-ERR 'Stale Connection'\r\n", "Stale Connection"),
        (answer(2, b"what?"), "an answer cannot be"),
        (b"what?\r\n", "cannot begin with"),
    ],
)
def test_what_was_acked_before_the_end_is_acked(says: Says, end: bytes, why: str) -> None:
    words = answer(0, ACK) + answer(1, ACK) + end
    with contextlib.closing(nats.Sender(says((b"", words)), TOPICS, 0)) as sender:
        sender.send(batch(0, 3))
        found, lost = until_lost(sender)
    assert found == dict.fromkeys(range(2), Outcome.ACKED) and why in str(lost)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (b"", "the connection broke"),
        (answer(0, ACK) + answer(1, ACK)[:30], "the connection broke"),  # it dies in the middle of a frame
        (b"HTTP/1.1 400 Bad Request\r\n", "an answer that is no NATS"),
        (answer(3, ACK), "an answer that is no NATS"),  # to what was not sent
        (answer(0, ACK) * 2, "an answer that is no NATS"),  # to what was answered
        (answer(0, ACK) + answer(1, ACK) * 2, "an answer that is no NATS"),
        (answer(0, b"what?"), "an answer that is no NATS"),
        (b"MSG _ACK.IDENTITY.what 1 2\r\n{}\r\n", "an answer that is no NATS"),
        (b"-ERR 'Stale Connection'\r\n", "an error that may mean anything"),
    ],
)
def test_a_broken_connection_is_lost(says: Says, words: bytes, reason: str) -> None:
    with contextlib.closing(nats.Sender(says((b"", words)), TOPICS, 0)) as sender:
        sender.send(batch(0, 3))
        with pytest.raises(ConnectionLost) as lost:
            while True:
                sender.answers(drivers.PATIENCE)
        assert nats.REASONS[lost.value.reason] == reason


def test_it_answers_a_ping(says: Says) -> None:
    ping = INFO, (b"PING", b"PONG\r\n"), (b"PUB", b"PING\r\n"), (b"PONG", lambda heard: b"+OK\r\n")
    with (
        scripted.says(*ping) as address,
        contextlib.closing(nats.Sender({**address, "stream": STREAM}, TOPICS, 0)) as sender,
    ):
        sender.send(batch(0, 1))
        with pytest.raises(ConnectionLost, match="closed by the other side"):
            while True:
                sender.answers(drivers.PATIENCE)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (b"", "closed by the other side"),
        (b"MSG ackworth.topic-0 1 no.ack 1\r\nx\r\n", "acknowledges nothing"),
        (b"MSG another.topic 1 $JS.ACK.s.g.1.2.3.4.5 1\r\nx\r\n", "another.topic is no topic"),
        (b"HMSG _ACK.IDENTITY.next 1 33 33\r\nNATS/1.0 409 Consumer Deleted\r\n\r\n\r\n", "Consumer Deleted"),
    ],
)
def test_a_receiver_of_a_broken_connection_is_lost(says: Says, words: bytes, why: str) -> None:
    steps = LET_IN, (b"$JS.API.CONSUMER.MSG.NEXT", words)
    with (
        contextlib.closing(nats.Receiver(says(*steps), TOPICS, GROUPS[0], 0)) as receiver,
        pytest.raises(ConnectionLost, match=why),
    ):
        receiver.receive(10, drivers.PATIENCE)


LET_IN = (b"$JS.API.CONSUMER.INFO", b"MSG _ACK.IDENTITY.ask 1 2\r\n{}\r\n")


def test_a_request_that_the_server_forgets_is_made_again(says: Says, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nats, "_STAY", 0.01)
    monkeypatch.setattr(nats, "_OVER_AFTER", 0.01)
    sent = body(3)
    message = b"MSG ackworth.topic-0 1 $JS.ACK.ackworth.g.1.2.3.4.5 %d\r\n%b\r\n" % (len(sent), sent)
    again = LET_IN, (b"$JS.API.CONSUMER.MSG.NEXT", b""), (b"$JS.API.CONSUMER.MSG.NEXT", message)
    with contextlib.closing(nats.Receiver(says(*again), TOPICS, GROUPS[0], 0)) as receiver:
        assert seqs(receiver.receive(10, drivers.PATIENCE)) == [3]


def test_a_server_that_answers_no_request_is_lost(says: Says, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_STAY", "_OVER_AFTER", "_GIVE_BACK_WITHIN"):
        monkeypatch.setattr(nats, name, 0.01)
    receiver = nats.Receiver(says(LET_IN, (b"what is never said", b"")), TOPICS, GROUPS[0], 0)
    monkeypatch.setattr(nats, "_ANSWER_WITHIN", 0.2)
    with contextlib.closing(receiver), pytest.raises(ConnectionLost, match="no answer within"):
        receiver.receive(10, drivers.PATIENCE)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (b'MSG _ACK.IDENTITY.ask 1 28\r\n{"error":"no such consumer"}\r\n', "no such consumer"),
        (b"HMSG _ACK.IDENTITY.ask 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n", "JetStream is not ready"),
    ],
)
def test_a_group_that_is_not_there_is_no_receiver(says: Says, words: bytes, why: str) -> None:
    with pytest.raises(ConnectionLost, match=why):
        nats.Receiver(says((b"", words)), TOPICS, GROUPS[0], 0)


def test_a_server_that_does_not_answer_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nats, "_ANSWER_WITHIN", 0.1)
    with (
        scripted.says(INFO, (b"more", b"")) as address,
        pytest.raises(ConnectionLost, match="no answer within"),
    ):
        nats.Sender({**address, "stream": STREAM}, TOPICS, 0)


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ConnectionLost, match=f"127.0.0.1:{port}: Connection refused"):
        nats.prepare({"host": "127.0.0.1", "port": port, "stream": STREAM}, TOPICS, GROUPS)

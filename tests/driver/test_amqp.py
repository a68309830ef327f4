"""The driver of AMQP against a real RabbitMQ, against pika, and against brokers that misbehave."""

import contextlib
import select
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pika
import pytest

from ackworth.broker.rabbitmq import BROKER
from ackworth.driver import amqp
from ackworth.driver.codec.amqp import HEARTBEAT, Method, command, publish, short_string, table
from ackworth.driver.contract import Address, Answered, ConnectionLost, Incoming, Outgoing, Waitable
from ackworth.model.outcome import Outcome
from ackworth.testing import drivers
from ackworth.testing.drivers import CHOOSY, GROUPS, TOPICS, check_driver
from ackworth.testing.nodes import Running, running
from tests.conftest import had
from tests.driver import scripted
from tests.driver.messages import all_answers, batch, body, outcomes, reasons, seqs, until_lost

NOBODY = {"user": "", "password": "", "host_name": "/", "exchange": "ackworth"}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One for all tests here: it takes seconds to start."""
    with running(had(BROKER), tmp_path_factory.mktemp("rabbitmq")) as found:
        yield found


Channel = Any  # of pika, which has no types


@pytest.fixture
def channel(node: Running) -> Iterator[Channel]:
    address = node.address
    credentials = pika.PlainCredentials(address["user"], address["password"])
    parameters = pika.ConnectionParameters(address["host"], address["port"], credentials=credentials)
    with contextlib.closing(pika.BlockingConnection(parameters)) as connection:
        yield connection.channel()


@pytest.fixture
def fresh(node: Running, channel: Channel) -> Callable[[], Address]:
    """An address where nothing is left of earlier tests."""

    def clear() -> Address:
        for topic in TOPICS:
            for group in (*GROUPS, CHOOSY):
                channel.queue_delete(f"{topic}.{group}")
        channel.exchange_delete("ackworth")
        return node.address

    return clear


@pytest.fixture
def address(fresh: Callable[[], Address]) -> Address:
    found = fresh()
    amqp.prepare(found, TOPICS, GROUPS)
    return found


@pytest.mark.real
@pytest.mark.parametrize("queue", ["quorum", "classic-v1", "classic-v2"])
def test_it_keeps_every_promise(fresh: Callable[[], Address], queue: str, node: Running) -> None:
    of_kind = BROKER.address({"rabbit": node.place}, {"queue": queue})
    check_driver(amqp, lambda: {**fresh(), "arguments": of_kind["arguments"]})


@pytest.mark.real
def test_pika_reads_what_we_send(address: Address, channel: Channel) -> None:
    sent = batch(0, 300)
    with contextlib.closing(amqp.Sender(address, TOPICS, 0)) as sender:
        sender.send(sent)
        assert reasons(amqp, all_answers(sender, 300)) == {(Outcome.ACKED, "")}
    for i, topic in enumerate(TOPICS):
        got = [channel.basic_get(f"{topic}.{GROUPS[0]}", auto_ack=True) for _ in range(100)]
        assert [body for _, _, body in got] == [row.tobytes()[:100] for row in sent.bodies[i :: len(TOPICS)]]
        assert {(properties.delivery_mode, method.routing_key) for method, properties, _ in got} == {(2, topic)}


@pytest.mark.real
def test_we_read_what_pika_sends_and_it_sees_our_acknowledgements(address: Address, channel: Channel) -> None:
    for seq in range(30):
        channel.basic_publish("ackworth", TOPICS[seq % 3], body(seq))
    got: list[Incoming] = []
    with contextlib.closing(amqp.Receiver(address, TOPICS, GROUPS[0], 0)) as receiver:
        while sum(map(len, got)) < 30:
            incoming = receiver.receive(7, drivers.PATIENCE)
            assert incoming is not None and len(incoming) <= 7
            got.append(incoming)
        assert sorted(seq for one in got for seq in seqs(one)) == list(range(30))
        receiver.acknowledge(got[-1])  # the others stay with the broker
        for one in got[:2]:
            receiver.acknowledge(one)
        left = 30 - sum(map(len, (*got[:2], got[-1])))
        amqp.prepare(address, [], [])  # an answer to it comes after all of the above
    with contextlib.closing(amqp.Receiver(address, TOPICS, GROUPS[0], 1)) as receiver:
        again: list[int] = []
        while len(again) < left:
            again += seqs(receiver.receive(100, drivers.PATIENCE))
    assert sorted(again) == sorted(seq for one in got[2:-1] for seq in seqs(one))


@pytest.mark.real
def test_bodies_of_several_frames_come_and_go(address: Address) -> None:
    with contextlib.closing(amqp.Sender(address, TOPICS, 0)) as sender:
        sender.send(batch(0, 6, size=300_000))
        all_answers(sender, 6)
    with contextlib.closing(amqp.Receiver(address, TOPICS, GROUPS[1], 0)) as receiver:
        found: list[int] = []
        while len(found) < 6:
            found += seqs(receiver.receive(100, drivers.PATIENCE))
    assert sorted(found) == list(range(6))


@pytest.mark.real
def test_a_message_that_no_queue_takes_is_refused_and_the_others_are_not(address: Address, channel: Channel) -> None:
    for group in GROUPS:
        channel.queue_delete(f"{TOPICS[1]}.{group}")
    with contextlib.closing(amqp.Sender(address, TOPICS, 0)) as sender:
        sender.send(batch(0, 30))
        found = all_answers(sender, 30)
    assert outcomes(found) == {s: Outcome.REFUSED if s % 3 == 1 else Outcome.ACKED for s in range(30)}
    assert (Outcome.REFUSED, amqp.DEFINITE[312]) in reasons(amqp, found)


@pytest.mark.real
def test_a_full_queue_is_unknown_as_the_other_group_has_it(fresh: Callable[[], Address], channel: Channel) -> None:
    full = {"x-queue-type": "classic", "x-max-length": 1, "x-overflow": "reject-publish"}
    found = fresh()
    amqp.prepare({**found, "arguments": full}, TOPICS[:1], GROUPS[:1])
    amqp.prepare(found, TOPICS[:1], GROUPS[1:])
    with contextlib.closing(amqp.Sender(found, TOPICS[:1], 0)) as sender:
        for seq in range(3):
            sender.send(Outgoing(seq, np.zeros(1, np.int64), batch(seq * 3, 1).bodies, np.full(1, 100)))
            last = all_answers(sender, 1)
    assert reasons(amqp, last) == {(Outcome.UNKNOWN, "the broker takes no responsibility for it (basic.nack)")}
    with contextlib.closing(amqp.Receiver(found, TOPICS[:1], GROUPS[1], 0)) as receiver:
        stored: list[int] = []
        while len(stored) < 3:
            stored += seqs(receiver.receive(10, drivers.PATIENCE))


@pytest.mark.real
def test_a_queue_of_another_kind_is_not_taken_for_ours(address: Address) -> None:
    with pytest.raises(ConnectionLost, match="406 PRECONDITION_FAILED"):
        amqp.prepare({**address, "arguments": {"x-queue-type": "classic"}}, TOPICS, GROUPS)


@pytest.mark.real
def test_wrong_credentials_are_said_so(address: Address) -> None:
    with pytest.raises(ConnectionLost, match="403 ACCESS_REFUSED"):
        amqp.prepare({**address, "password": "wrong"}, [], [])


@pytest.mark.real
def test_a_queue_that_is_deleted_is_noticed(address: Address, channel: Channel) -> None:
    with contextlib.closing(amqp.Receiver(address, TOPICS, GROUPS[0], 0)) as receiver:
        wait_until_told_empty(receiver)
        channel.queue_delete(f"{TOPICS[2]}.{GROUPS[0]}")
        with pytest.raises(ConnectionLost, match="the queue of consumer 00002 is gone"):
            receiver.receive(10, drivers.PATIENCE)


def wait_until_told_empty(receiver: amqp.Receiver) -> None:
    assert isinstance(receiver, Answered)
    for _ in range(3000):
        assert receiver.receive(10, 0.02) is None
        if receiver.told_empty:
            return
    pytest.fail("it never said that there is nothing")


@pytest.mark.real
def test_it_is_told_that_there_is_nothing_until_something_comes(address: Address) -> None:
    with (
        contextlib.closing(amqp.Sender(address, TOPICS, 0)) as sender,
        contextlib.closing(amqp.Receiver(address, TOPICS, GROUPS[0], 0)) as receiver,
    ):
        wait_until_told_empty(receiver)
        sender.send(batch(0, 1))
        assert seqs(receiver.receive(10, drivers.PATIENCE)) == [0]
        assert not receiver.told_empty
        assert isinstance(receiver, Waitable) and isinstance(sender, Waitable)
        assert select.select([sender], [], [], drivers.PATIENCE)[0] == [sender]


# ---- brokers that misbehave --------------------------------------------------------------------------------


WELCOME = (
    command(Method.CONNECTION_START, b"\0\x09", table({}), bytes(8), channel=0),
    command(Method.CONNECTION_TUNE, struct.pack(">HIH", 10, 1 << 17, 1), channel=0),  # a heartbeat every second
    command(Method.CONNECTION_OPEN_OK, bytes(1), channel=0),
    command(Method.CHANNEL_OPEN_OK, bytes(4)),
)
TO_SENDER = command(Method.CONFIRM_SELECT_OK)
TO_RECEIVER = command(Method.BASIC_QOS_OK)


Says = Callable[..., Address]


@pytest.fixture
def says() -> Iterator[Says]:
    """A broker that is fine until it is sent messages or asked for some; then it says these bytes, and hangs up."""
    with contextlib.ExitStack() as stack:

        def start(welcome: bytes, words: bytes) -> Address:
            asked = Method.BASIC_PUBLISH if welcome == TO_SENDER else Method.BASIC_CONSUME
            steps = ((b"AMQP", b"".join(WELCOME) + welcome), (struct.pack(">I", asked), words))
            return {**stack.enter_context(scripted.says(*steps)), **NOBODY}

        yield start


def ack(tag: int, *, multiple: bool = False, method: Method = Method.BASIC_ACK) -> bytes:
    return command(method, struct.pack(">Q?", tag, multiple))


def returned(code: int, seq: int) -> bytes:
    arguments = struct.pack(">H", code) + short_string("no") + short_string("ackworth") + short_string(TOPICS[0])
    content = publish("", "", seq, b"body")[len(command(Method.BASIC_PUBLISH, bytes(5))) :]
    return command(Method.BASIC_RETURN, arguments) + content


def test_every_kind_of_answer_in_one_read(says: Says) -> None:
    words = [ack(2), returned(312, 8), HEARTBEAT, ack(4, multiple=True), returned(313, 10)]
    words += [ack(5, method=Method.BASIC_NACK), ack(6)]
    with contextlib.closing(amqp.Sender(says(TO_SENDER, b"".join(words)), TOPICS, 0)) as sender:
        sender.send(batch(5, 6))
        found = all_answers(sender, 6)
        assert np.concatenate([a.seqs for a in found]).tolist() == [6, 8, 5, 7, 10, 9]
    yes, no, unclear = Outcome.ACKED, Outcome.REFUSED, Outcome.UNKNOWN
    assert np.concatenate([a.outcomes for a in found]).tolist() == [yes, no, yes, yes, unclear, unclear]


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (command(Method.CHANNEL_CLOSE, b"\1\x40\3end\0\0\0\0"), "320 end"),
        (command(Method.CONNECTION_CLOSE, b"\1\x40\3end\0\0\0\0"), "320 end"),
        (b"what?", "cannot begin with"),
    ],
)
def test_what_was_acked_before_the_end_is_acked(says: Says, end: bytes, why: str) -> None:
    with contextlib.closing(amqp.Sender(says(TO_SENDER, ack(2, multiple=True) + end), TOPICS, 0)) as sender:
        sender.send(batch(0, 3))
        found, lost = until_lost(sender)
    assert found == dict.fromkeys(range(2), Outcome.ACKED) and why in str(lost)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (b"", "the connection broke"),
        (ack(1) + ack(2)[:9], "the connection broke"),  # it dies in the middle of a frame
        (b"HTTP/1.1 400 Bad Request\r\n", "an answer that is no AMQP"),
        (ack(4), "an answer that is no AMQP"),  # of a message that was not sent
        (returned(312, 77), "an answer that is no AMQP"),
        (command(Method.QUEUE_BIND_OK), "an answer that is no AMQP"),
        (command(Method.CHANNEL_CLOSE, b"\1"), "an answer that is no AMQP"),
        (command(Method.CHANNEL_CLOSE, b"\1\x94\4gone\0\0\0\0"), "the broker closed the connection or the channel"),
        (command(Method.CONNECTION_CLOSE, b"\1\x40\3end\0\0\0\0"), "the broker closed the connection or the channel"),
    ],
)
def test_a_broken_connection_is_lost(says: Says, words: bytes, reason: str) -> None:
    with contextlib.closing(amqp.Sender(says(TO_SENDER, words), TOPICS, 0)) as sender:
        sender.send(batch(0, 3))
        with pytest.raises(ConnectionLost) as lost:
            while True:
                sender.answers(drivers.PATIENCE)
    assert amqp.REASONS[lost.value.reason] == reason


@pytest.mark.parametrize(
    "words", [b"\1\0", ack(1), command(Method.BASIC_DELIVER, b"x"), command(Method.QUEUE_DECLARE_OK, bytes(9))]
)
def test_a_receiver_of_a_broken_connection_is_lost(says: Says, words: bytes) -> None:
    receiver = amqp.Receiver(says(TO_RECEIVER, words), TOPICS, GROUPS[0], 0)
    with contextlib.closing(receiver), pytest.raises(ConnectionLost):
        while True:
            receiver.receive(10, drivers.PATIENCE)


@pytest.mark.parametrize(
    ("tune", "then", "why"),
    [
        (command(Method.CONNECTION_TUNE, bytes(3), channel=0), b"", "a method says less than it must"),
        (WELCOME[1], command(Method.CHANNEL_CLOSE, b"\2\x12\2no\0\0\0\0"), "530 no"),
    ],
)
@pytest.mark.parametrize("open_one", [amqp.Sender, lambda address, topics, i: amqp.Receiver(address, topics, "g", i)])
def test_one_that_does_not_let_us_begin_is_lost(
    tune: bytes, then: bytes, why: str, open_one: Callable[..., object]
) -> None:
    welcome = b"".join((WELCOME[0], tune, *WELCOME[2:], then))
    with scripted.says((b"AMQP", welcome)) as address, pytest.raises(ConnectionLost, match=why):
        open_one({**address, **NOBODY}, TOPICS, 0)


def test_a_broker_without_heartbeats_is_lost_but_hears_ours() -> None:
    heard: list[bytes] = []

    def hear(data: bytes) -> bytes:
        heard.append(data)
        return b""

    steps = ((b"AMQP", b"".join(WELCOME) + TO_SENDER), (HEARTBEAT, hear), (b"never", b""))
    with scripted.says(*steps) as address:
        sender = amqp.Sender({**address, **NOBODY}, TOPICS, 0)
        with contextlib.closing(sender), pytest.raises(ConnectionLost, match="no heartbeat for 2 s"):
            while True:
                sender.answers(0.1)
    assert heard


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ConnectionLost, match=f"127.0.0.1:{port}: Connection refused"):
        amqp.prepare({"host": "127.0.0.1", "port": port, **NOBODY}, TOPICS, GROUPS)

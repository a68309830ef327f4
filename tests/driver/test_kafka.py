"""The driver of Kafka against a real broker, and against kafka-python."""

import contextlib
import itertools
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import kafka as kafka_python
import numpy as np
import pytest
from confluent_kafka import KafkaError

from ackworth.broker.kafka import BROKER
from ackworth.broker.process import kill_and_wait, send, stop_and_wait
from ackworth.driver import kafka, librdkafka
from ackworth.driver.contract import Address, Answered, ConnectionLost, Outgoing, load, marks_repeats
from ackworth.model.errors import Unavailable
from ackworth.model.outcome import Outcome
from ackworth.testing import drivers
from ackworth.testing.drivers import check_driver
from ackworth.testing.nodes import Running, running
from tests.conftest import had
from tests.driver.messages import all_answers, batch, body, outcomes, reasons, seqs

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One for all tests here: it takes seconds to start."""
    with running(had(BROKER), tmp_path_factory.mktemp("a,kafka"), flush_messages="never") as found:
        yield found


def test_its_data_is_in_its_place_also_if_the_path_has_a_comma(node: Running) -> None:
    assert "," in str(node.place.data)
    assert {path.name for path in node.place.data.iterdir()} == {"logs"}
    assert (node.place.data / "logs" / "meta.properties").exists()


numbers = itertools.count()


@pytest.fixture
def fresh(node: Running, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Address]:
    """The same broker with names that it has never heard."""

    def rename() -> Address:
        number = next(numbers)
        monkeypatch.setattr(drivers, "TOPICS", [f"topic-{number}-{i}" for i in range(3)])
        monkeypatch.setattr(drivers, "GROUPS", [f"group-{number}-{i}" for i in range(2)])
        monkeypatch.setattr(drivers, "CHOOSY", f"choosy-{number}")
        return node.address

    return rename


@pytest.fixture
def address(fresh: Callable[[], Address]) -> Address:
    found = fresh()
    kafka.prepare(found, drivers.TOPICS, drivers.GROUPS)
    return found


def everything(receiver: kafka.Receiver, count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        found += seqs(receiver.receive(100, drivers.PATIENCE))
    return found


def test_it_keeps_every_promise(fresh: Callable[[], Address]) -> None:
    check_driver(kafka, lambda: {**fresh(), "acks": "idempotent"})
    assert not marks_repeats(kafka)


@pytest.mark.parametrize("acks", [1, 0])  # `all` is sent as `1` is
def test_other_senders_keep_theirs(fresh: Callable[[], Address], acks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A receiver knows nothing of how a message was sent."""
    of_senders = [drivers.what_is_sent_is_answered_once, drivers.bodies_of_all_sizes_arrive_in_order]
    monkeypatch.setattr(drivers, "PROMISES", of_senders)
    check_driver(kafka, lambda: {**fresh(), "acks": acks})


def test_a_driver_that_should_mark_repeats_and_does_not_is_found(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "MARKS_REPEATS", True)
    with pytest.raises(AssertionError, match="a repeat was not flagged"):
        drivers.what_is_not_acknowledged_comes_again_and_says_so(kafka, address)


def test_kafka_python_reads_what_we_send(address: Address) -> None:
    sent = batch(0, 30)
    with contextlib.closing(kafka.Sender(address, drivers.TOPICS, 0)) as sender:
        sender.send(sent)
        assert reasons(kafka, all_answers(sender, 30)) == {(Outcome.ACKED, "")}
    reader = kafka_python.KafkaConsumer(bootstrap_servers=address["servers"], auto_offset_reset="earliest")
    with contextlib.closing(reader):
        for i, topic in enumerate(drivers.TOPICS):
            reader.assign([kafka_python.TopicPartition(topic, 0)])
            got = [record.value for record in itertools.islice(reader, 10)]
            assert got == [row.tobytes()[:100] for row in sent.bodies[i::3]]


def test_we_read_what_kafka_python_sends_and_it_sees_our_acknowledgements(address: Address) -> None:
    with contextlib.closing(kafka_python.KafkaProducer(bootstrap_servers=address["servers"])) as writer:
        for seq in range(30):
            writer.send(drivers.TOPICS[seq % 3], body(seq), partition=0)
    with contextlib.closing(kafka.Receiver(address, drivers.TOPICS, drivers.GROUPS[0], 0)) as receiver:
        count = 0
        while count < 30:
            incoming = receiver.receive(100, drivers.PATIENCE)
            assert incoming is not None
            checked = dict(zip(seqs(incoming), sorted(incoming.positions.tolist()), strict=True))
            assert set(checked.values()) <= set(range(10))
            receiver.acknowledge(incoming)
            count += len(incoming)
    reader = kafka_python.KafkaConsumer(bootstrap_servers=address["servers"], group_id=drivers.GROUPS[0])
    with contextlib.closing(reader):
        parts = [kafka_python.TopicPartition(topic, 0) for topic in drivers.TOPICS]
        assert [reader.committed(part) for part in parts] == [10, 10, 10]


def test_a_commit_that_nobody_answers_is_not_waited_for_for_ever(
    address: Address, node: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "_COMMITTED_WITHIN", 0.5)
    with contextlib.closing(kafka.Sender(address, drivers.TOPICS, 0)) as sender:
        sender.send(batch(0, 3))
        all_answers(sender, 3)
    with contextlib.closing(kafka.Receiver(address, drivers.TOPICS, drivers.GROUPS[0], 0)) as receiver:
        incoming = receiver.receive(3, drivers.PATIENCE)
        assert incoming is not None
        pids = node.node.processes()
        stop_and_wait(pids)
        try:
            with pytest.raises(ConnectionLost, match=r"no answer within 0\.5 s"):
                receiver.acknowledge(incoming)
        finally:
            send(pids, signal.SIGCONT)


def test_what_came_while_a_commit_was_awaited_goes_with_its_topic(address: Address) -> None:
    with contextlib.closing(kafka.Sender(address, drivers.TOPICS, 0)) as sender:
        sender.send(batch(0, 30))
        all_answers(sender, 30)
    receivers = [kafka.Receiver(address, drivers.TOPICS, drivers.GROUPS[0], 0)]
    found: list[int] = []
    try:
        while not receivers[0]._early:
            if incoming := receivers[0].receive(1, drivers.PATIENCE):
                found += seqs(incoming)
                receivers[0].acknowledge(incoming)
        receivers.append(kafka.Receiver(address, drivers.TOPICS, drivers.GROUPS[0], 1))
        while not receivers[1]._assigned:
            assert receivers[1].receive(1, 0.05) is None
            early = receivers[0]._next(0.05)  # which is how it hears that it has to share
            receivers[0]._early += early
        while len(set(found)) < 30 or not all(receiver.told_empty for receiver in receivers):
            for receiver in receivers:
                if incoming := receiver.receive(100, 0.05):
                    found += seqs(incoming)
                    receiver.acknowledge(incoming)
        assert sorted(found) == list(range(30))
    finally:
        for receiver in receivers:
            receiver.close()


def test_a_commit_that_fails_for_some_topics_has_failed(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.closing(kafka.Sender(address, drivers.TOPICS, 0)) as sender:
        sender.send(batch(0, 3))
        all_answers(sender, 3)
    told = kafka.Receiver._commit_answered

    def spoilt(receiver: kafka.Receiver, error: Any, partitions: Sequence[Any]) -> None:
        failed = SimpleNamespace(error=KafkaError(KafkaError.REBALANCE_IN_PROGRESS))
        told(receiver, error, [*partitions, failed])

    monkeypatch.setattr(kafka.Receiver, "_commit_answered", spoilt)
    with contextlib.closing(kafka.Receiver(address, drivers.TOPICS, drivers.GROUPS[0], 0)) as receiver:
        incoming = receiver.receive(3, drivers.PATIENCE)
        assert incoming is not None
        with pytest.raises(ConnectionLost, match="rebalance"):
            receiver.acknowledge(incoming)


def test_a_message_that_is_too_large_is_refused_by_the_broker_and_the_others_are_not(address: Address) -> None:
    small, large = batch(0, 2, 100), batch(2, 1, 2_000_000)
    with contextlib.closing(kafka.Sender(address, drivers.TOPICS, 0)) as sender:
        sender.send(small)
        sender.send(large)
        found = all_answers(sender, 3)
    assert outcomes(found) == {0: Outcome.ACKED, 1: Outcome.ACKED, 2: Outcome.REFUSED}
    assert (Outcome.REFUSED, "it is too large (MSG_SIZE_TOO_LARGE)") in reasons(kafka, found)


def test_what_the_library_refuses_is_refused_too(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kafka._SENDER, "message.max.bytes", 1000)
    sizes = np.array([100, 5000, 100])
    mixed = Outgoing(0, np.zeros(3, np.int64), batch(0, 3, 5000).bodies, sizes)
    with contextlib.closing(kafka.Sender(address, drivers.TOPICS, 0)) as sender:
        sender.send(mixed)
        assert outcomes(all_answers(sender, 3)) == {0: Outcome.ACKED, 1: Outcome.REFUSED, 2: Outcome.ACKED}


def test_it_is_told_that_there_is_nothing_until_something_comes(address: Address) -> None:
    with (
        contextlib.closing(kafka.Sender(address, drivers.TOPICS, 0)) as sender,
        contextlib.closing(kafka.Receiver(address, drivers.TOPICS, drivers.GROUPS[0], 0)) as receiver,
    ):
        assert isinstance(receiver, Answered) and not receiver.told_empty
        while not receiver.told_empty:
            assert receiver.receive(10, 0.05) is None
        sender.send(batch(0, 3))
        assert everything(receiver, 3)
        while not receiver.told_empty:
            assert receiver.receive(10, 0.05) is None


def test_what_another_has_acknowledged_is_not_read_by_who_comes_after(address: Address) -> None:
    with contextlib.closing(kafka.Sender(address, drivers.TOPICS, 0)) as sender:
        sender.send(batch(0, 6))
        all_answers(sender, 6)
    for _ in range(2):
        with contextlib.closing(kafka.Receiver(address, drivers.TOPICS[:1], drivers.GROUPS[0], 0)) as receiver:
            assert everything(receiver, 2) == [0, 3]  # not acknowledged, so they come again
    with contextlib.closing(kafka.Receiver(address, drivers.TOPICS[:1], drivers.GROUPS[0], 0)) as receiver:
        incoming = receiver.receive(1, drivers.PATIENCE)
        assert incoming is not None
        receiver.acknowledge(incoming)
    with contextlib.closing(kafka.Receiver(address, drivers.TOPICS[:1], drivers.GROUPS[0], 0)) as receiver:
        assert everything(receiver, 1) == [3]


def test_without_the_library_it_says_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    monkeypatch.delitem(sys.modules, "ackworth.driver.kafka")
    with pytest.raises(Unavailable, match=r"pip install 'ackworth\[kafka\]'"):
        load("kafka")


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(librdkafka, "ANSWER_WITHIN", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = {"servers": f"127.0.0.1:{listener.getsockname()[1]}", "acks": "all"}
    for use in (
        lambda: kafka.prepare(address, [], []),
        lambda: kafka.Sender(address, ["topic"], 0),
        lambda: kafka.Receiver(address, ["topic"], "group", 0),
    ):
        with pytest.raises(ConnectionLost) as lost:
            use()
        assert kafka.REASONS[lost.value.reason] == "the connection broke"


def test_a_broker_that_dies_is_noticed_by_all_but_an_idempotent_sender(node: Running, address: Address) -> None:
    """The last test here: it takes the broker with it."""
    plain = kafka.Sender({**address, "acks": "all"}, drivers.TOPICS, 0)
    patient = kafka.Sender({**address, "acks": "idempotent"}, drivers.TOPICS, 1)
    receiver = kafka.Receiver(address, drivers.TOPICS, drivers.GROUPS[0], 0)
    with contextlib.closing(plain), contextlib.closing(patient), contextlib.closing(receiver):
        patient.send(batch(0, 1))
        all_answers(patient, 1)
        kill_and_wait(node.node.processes())
        patient.send(batch(1, 1))
        for ask in (lambda: plain.answers(0.1), lambda: receiver.receive(10, 0.1)):
            with pytest.raises(ConnectionLost):
                while True:
                    ask()
        node.node.start()
        node.wait_until_ready()
        assert outcomes(all_answers(patient, 1)) == {1: Outcome.ACKED}

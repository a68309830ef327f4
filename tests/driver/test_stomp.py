"""The driver of STOMP against a real ActiveMQ, against stomp.py, and against servers that misbehave."""

import contextlib
import itertools
import queue
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import stomp as stomp_py
from stomp.utils import Frame

from ackworth.broker.activemq import BROKER, PREFIX, ActiveMQ
from ackworth.broker.contract import Place
from ackworth.broker.server import Server
from ackworth.driver import stomp
from ackworth.driver.contract import Address, ConnectionLost
from ackworth.model.outcome import Outcome
from ackworth.testing import drivers
from ackworth.testing.drivers import GROUPS, TOPICS, check_driver
from ackworth.testing.nodes import Running, running
from tests.conftest import had
from tests.driver import scripted
from tests.driver.messages import all_answers, batch, body, outcomes, reasons, seqs, until_lost


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One for all of them: Java takes its time."""
    with running(had(BROKER), tmp_path_factory.mktemp("activemq"), sync="never") as found:
        yield found


@pytest.fixture
def address(server: Running) -> Iterator[Address]:
    """Its queues are there, and empty again afterwards."""
    stomp.prepare(server.address, TOPICS, GROUPS)
    yield server.address
    for group in GROUPS:
        with contextlib.closing(stomp.Receiver(server.address, TOPICS, group, 0)) as receiver:
            while not receiver.told_empty:
                if (incoming := receiver.receive(1000, 0.1)) is not None:
                    receiver.acknowledge(incoming)


class Listener(stomp_py.ConnectionListener):
    def __init__(self) -> None:
        self.messages: queue.Queue[Frame] = queue.Queue()

    def on_message(self, frame: Frame) -> None:
        self.messages.put(frame)


@contextlib.contextmanager
def with_stomp_py(address: Address) -> Iterator[tuple[stomp_py.StompConnection12, Listener]]:
    """What somebody has who uses stomp.py. Bodies are bytes."""
    client = stomp_py.Connection12([(address["host"], address["port"])], auto_decode=False)
    client.set_listener("", listener := Listener())
    client.connect(wait=True)
    try:
        yield client, listener
    finally:
        client.disconnect()


@pytest.mark.real
def test_it_keeps_every_promise(server: Running) -> None:
    numbers = itertools.count()
    check_driver(stomp, lambda: {**server.address, "prefix": f"{PREFIX}-{next(numbers)}"})


@pytest.mark.real
def test_stomp_py_reads_what_we_send(address: Address) -> None:
    sent = batch(0, 30)
    with contextlib.closing(stomp.Sender(address, TOPICS, 0)) as sender:
        sender.send(sent)
        assert outcomes(all_answers(sender, 30)) == dict.fromkeys(range(30), Outcome.ACKED)
    with with_stomp_py(address) as (client, listener):
        client.subscribe(f"/queue/Consumer.{GROUPS[0]}.{PREFIX}.{TOPICS[1]}", id="1", ack="auto")
        found = [listener.messages.get(timeout=drivers.PATIENCE) for _ in range(11)]
    assert "ackworth-greeting" in found[0].headers
    assert [frame.body for frame in found[1:]] == [row.tobytes()[:100] for row in sent.bodies[1::3]]
    assert {frame.headers["persistent"] for frame in found} == {"true"}


@pytest.mark.real
def test_we_read_what_stomp_py_sends_and_it_sees_our_acknowledgements(address: Address) -> None:
    with with_stomp_py(address) as (client, listener):
        for i in range(30):
            client.send(f"/topic/{PREFIX}.{TOPICS[i % 3]}", body(i), headers={"persistent": "true"})
        with contextlib.closing(stomp.Receiver(address, TOPICS, GROUPS[0], 0)) as receiver:
            came: list[int] = []
            while len(came) < 30:
                incoming = receiver.receive(100, drivers.PATIENCE)
                came += seqs(incoming)
                assert incoming is not None and not incoming.redelivered.any()
                receiver.acknowledge(incoming)
            assert sorted(came) == list(range(30))
        client.send(f"/topic/{PREFIX}.{TOPICS[0]}", b"the first that is left")
        client.subscribe(f"/queue/Consumer.{GROUPS[0]}.{PREFIX}.{TOPICS[0]}", id="1", ack="auto")
        assert listener.messages.get(timeout=drivers.PATIENCE).body == b"the first that is left"


class Changed(ActiveMQ):
    """The same broker, told something more."""

    def __init__(self, more: str) -> None:
        self._more = more

    def node(self, name: str, place: Place, settings: Mapping[str, Any]) -> Server:
        node = super().node(name, place, settings)
        file = place.logs / f"{name}.xml"
        file.write_text(file.read_text().replace("<transportConnectors>", f"{self._more}<transportConnectors>"))
        return node


FORBIDDEN = """<plugins><simpleAuthenticationPlugin anonymousAccessAllowed="true"/><authorizationPlugin><map>
    <authorizationMap><authorizationEntries>
        <authorizationEntry queue=">" read="anonymous" write="anonymous" admin="anonymous"/>
        <authorizationEntry topic=">" read="anonymous" write="nobody" admin="anonymous"/>
    </authorizationEntries></authorizationMap></map></authorizationPlugin></plugins>"""
FULL = """<systemUsage><systemUsage sendFailIfNoSpace="true"><storeUsage><storeUsage limit="1 kb"/></storeUsage>
    </systemUsage></systemUsage>"""


@pytest.mark.real
@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (FORBIDDEN, (Outcome.REFUSED, "not permitted")),
        (FULL, (Outcome.UNKNOWN, "an error that may mean anything")),  # one group may have it, another not
    ],
    ids=["forbidden", "full"],
)
def test_real_refusals(tmp_path: Path, more: str, expected: tuple[int, str]) -> None:
    with running(had(Changed(more)), tmp_path, sync="never") as found:
        with contextlib.suppress(ConnectionLost):  # a full store refuses greetings too, when it has made their queues
            stomp.prepare(found.address, TOPICS, GROUPS)
        with contextlib.closing(stomp.Sender(found.address, TOPICS, 0)) as sender:
            sender.send(batch(0, 9))
            assert reasons(stomp, all_answers(sender, 9)) == {expected}


@pytest.mark.real
def test_what_one_that_died_had_comes_again(address: Address) -> None:
    with contextlib.closing(stomp.Sender(address, TOPICS, 0)) as sender:
        sender.send(batch(7, 1))
        all_answers(sender, 1)
    dead = stomp.Receiver(address, TOPICS, GROUPS[0], 0)
    assert seqs(dead.receive(10, drivers.PATIENCE)) == [7]
    dead._connection.close()
    with contextlib.closing(stomp.Receiver(address, TOPICS, GROUPS[0], 1)) as receiver:
        incoming = receiver.receive(10, drivers.PATIENCE)
        assert seqs(incoming) == [7] and incoming is not None and incoming.redelivered.all()
        receiver.acknowledge(incoming)


# ---- servers that misbehave --------------------------------------------------------------------------------

Says = Callable[[bytes], Address]
CONNECTED = (b"CONNECT\n", b"CONNECTED\nversion:1.2\n\n\0\n")


def at(address: Address) -> Address:
    return {**address, "prefix": PREFIX}


def receipt(seq: int) -> bytes:
    return b"RECEIPT\nreceipt-id:%012d\n\n\0\n" % seq


@pytest.fixture
def says() -> Iterator[Says]:
    """A server that lets one in, and says these words when something is sent or subscribed to; then it hangs up."""
    with contextlib.ExitStack() as stack:
        yield lambda words: at(stack.enter_context(scripted.says(CONNECTED, (b"destination:", words))))


@pytest.mark.parametrize("phrase", stomp.DEFINITE)
def test_a_definite_no_is_refused_and_the_next_answer_counts(says: Says, phrase: str) -> None:
    no = b"ERROR\nreceipt-id:%012d\nmessage:%b, so it says\n\na trace\0\n" % (6, phrase.encode())
    with contextlib.closing(stomp.Sender(says(receipt(5) + no + receipt(7)), TOPICS, 0)) as sender:
        sender.send(batch(5, 3))
        found = all_answers(sender, 3)
        assert outcomes(found) == {5: Outcome.ACKED, 6: Outcome.REFUSED, 7: Outcome.ACKED}
        assert (Outcome.REFUSED, stomp.DEFINITE[phrase]) in reasons(stomp, found)


def test_whatever_else_it_says_is_unknown(says: Says) -> None:
    no = b"ERROR\nreceipt-id:000000000000\nmessage:java.io.IOException\\c No space left on device\n\n\0"
    with contextlib.closing(stomp.Sender(says(no), TOPICS, 0)) as sender:
        sender.send(batch(0, 1))
        assert reasons(stomp, all_answers(sender, 1)) == {(Outcome.UNKNOWN, "an error that may mean anything")}


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (b"ERROR\nmessage:stopped\n\n\0", "stopped"),
        (b"RECEIPT\nreceipt-id:what\n\n\0", "which was not sent"),
        (b"WHAT\n\n\0", "cannot begin with"),
    ],
)
def test_what_was_acked_before_the_end_is_acked(says: Says, end: bytes, why: str) -> None:
    with contextlib.closing(stomp.Sender(says(receipt(0) + receipt(1) + end), TOPICS, 0)) as sender:
        sender.send(batch(0, 3))
        found, lost = until_lost(sender)
    assert found == dict.fromkeys(range(2), Outcome.ACKED) and why in str(lost)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (b"", "the connection broke"),
        (receipt(0) + receipt(1)[:20], "the connection broke"),  # it dies in the middle of a frame
        (b"HTTP/1.1 400 Bad Request\n\n", "an answer that is no STOMP"),
        (receipt(3), "an answer that is no STOMP"),  # of what was not sent
        (receipt(0) * 2, "an answer that is no STOMP"),  # of what has one
        (b"RECEIPT\nreceipt-id:what\n\n\0", "an answer that is no STOMP"),
        (b"RECEIPT\n\n\0", "an answer that is no STOMP"),
        (b"ERROR\nmessage:Unknown STOMP action\n\n\0", "an error that may mean anything"),
        (b"MESSAGE\n\n\0", "an error that may mean anything"),
    ],
)
def test_a_broken_connection_is_lost(says: Says, words: bytes, reason: str) -> None:
    with contextlib.closing(stomp.Sender(says(words), TOPICS, 0)) as sender:
        sender.send(batch(0, 3))
        with pytest.raises(ConnectionLost) as lost:
            while True:
                sender.answers(drivers.PATIENCE)
        assert stomp.REASONS[lost.value.reason] == reason


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (b"", "closed by the other side"),
        (b"ERROR\nmessage:no such queue\n\n\0", "no such queue"),
        (b"MESSAGE\ndestination:/queue/another\nack:1\n\nx\0", "/queue/another is no topic"),
        (b"MESSAGE\nack:1\n\nx\0", "without the header 'destination'"),
        (b"MESSAGE\ndestination:\nack:1\n\nx\0", "a message without a topic"),
        (b"MESSAGE\nackworth-greeting:true\n\nx\0", "without the header 'ack'"),
    ],
)
def test_a_receiver_of_a_broken_connection_is_lost(says: Says, words: bytes, why: str) -> None:
    with (
        contextlib.closing(stomp.Receiver(says(words), TOPICS, GROUPS[0], 0)) as receiver,
        pytest.raises(ConnectionLost, match=why),
    ):
        receiver.receive(10, drivers.PATIENCE)


def test_a_broker_that_gives_no_sign_is_not_taken_for_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stomp, "_SIGN_LASTS", 0.2)
    signs = (b"ABORT", b"RECEIPT\nreceipt-id:0\n\n\0\n"), (b"DISCONNECT", b"RECEIPT\nreceipt-id:bye\n\n\0\n")
    with (
        scripted.says(CONNECTED, *signs) as address,
        contextlib.closing(stomp.Receiver(at(address), TOPICS, GROUPS[0], 0)) as receiver,
    ):
        assert not receiver.told_empty
        while not receiver.told_empty:
            assert receiver.receive(10, 0.01) is None
        while receiver.told_empty:  # it asks again, and is not answered
            assert receiver.receive(10, 0.01) is None


def test_a_broker_that_gives_no_sign_for_long_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its machine may have lost its power: then nobody says that the connection is over."""
    monkeypatch.setattr(stomp, "_ANSWER_WITHIN", 0.2)
    monkeypatch.setattr(stomp, "_BYE_WITHIN", 0.0)
    with (
        scripted.says(CONNECTED, (b"what is never said", b"")) as address,
        contextlib.closing(stomp.Receiver(at(address), TOPICS, GROUPS[0], 0)) as receiver,
        pytest.raises(ConnectionLost, match="no answer within"),
    ):
        while True:
            assert receiver.receive(10, 0.01) is None


@pytest.mark.parametrize(
    ("words", "why"),
    [(b"ERROR\nmessage:User name or password is invalid\n\n\0", "password is invalid"), (b"\n", "no answer within")],
)
def test_one_that_does_not_let_us_in_is_lost(monkeypatch: pytest.MonkeyPatch, words: bytes, why: str) -> None:
    monkeypatch.setattr(stomp, "_ANSWER_WITHIN", 0.2)
    steps = (b"CONNECT", words), (b"what is never said", b"")
    with scripted.says(*steps) as address, pytest.raises(ConnectionLost, match=why):
        stomp.prepare(at(address), TOPICS, GROUPS)


def test_one_that_does_not_answer_is_not_waited_for_when_all_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stomp, "_ANSWER_WITHIN", 0.2)
    with (
        scripted.says(CONNECTED, (b"what is never said", b"")) as address,
        pytest.raises(ConnectionLost, match="no answer within"),
    ):
        stomp.remove(at(address), TOPICS, GROUPS)


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ConnectionLost, match=f"127.0.0.1:{port}: Connection refused"):
        stomp.prepare(at({"host": "127.0.0.1", "port": port}), TOPICS, GROUPS)

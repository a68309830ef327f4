"""What is at an address and is no broker of the kind that its URL says: one line tells so, soon."""

import socket
import threading
from collections.abc import Iterator

import pytest

from ackworth.broker import registry
from ackworth.broker.ports import HOST
from ackworth.driver import amqp, librdkafka, nats, resp, stomp, wire
from ackworth.model.errors import BadInput
from ackworth.run.attached import attach
from brook.stores import mysql_database

SCHEMES = [scheme for scheme in registry.schemes() if scheme != "sqlite"]
SOON = 0.2  # seconds, in the place of those that a real broker is given
GREETINGS = {"one that says nothing": b"", "another protocol": b"SSH-2.0-OpenSSH_9.2p1\r\n"}


@pytest.fixture(autouse=True)
def nobody_is_given_long(monkeypatch: pytest.MonkeyPatch) -> None:
    for driver in (amqp, nats, resp, stomp):
        monkeypatch.setattr(driver, "_ANSWER_WITHIN", SOON)
    monkeypatch.setattr(librdkafka, "ANSWER_WITHIN", SOON)
    monkeypatch.setattr(librdkafka, "_LOOK_AGAIN", SOON)
    monkeypatch.setattr(mysql_database, "LET_IN_WITHIN", SOON)
    monkeypatch.setattr(wire, "CONNECT_WITHIN", SOON)


@pytest.fixture(params=GREETINGS)
def other(request: pytest.FixtureRequest) -> Iterator[int]:
    """The port of a server that greets whoever comes, and then keeps silent."""
    guests: list[socket.socket] = []

    def serve() -> None:
        while True:
            guest, _ = listener.accept()
            guests.append(guest)
            if ended.is_set():
                return
            guest.sendall(GREETINGS[request.param])

    ended = threading.Event()
    with socket.create_server((HOST, 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        ended.set()
        socket.create_connection(listener.getsockname()).close()
        thread.join()
    for guest in guests:
        guest.close()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_server_of_another_kind_is_said_to_be_none(scheme: str, other: int) -> None:
    path = "/queue" if scheme.startswith("mysql") else ""
    with pytest.raises(BadInput) as said:
        attach(f"{scheme}://ann:s3cret@{HOST}:{other}{path}", [])
    line = str(said.value)
    assert line.startswith(f"--attach {scheme}://ann:***@{HOST}:{other}{path}: ") and "\n" not in line
    assert "check the address, the credentials, and whether it has TLS" in line and "s3cret" not in line

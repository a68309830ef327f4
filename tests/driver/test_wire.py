"""A connection gives all that came before it broke, and says why it did."""

import contextlib
import select
import socket
import struct
from collections.abc import Iterator

import pytest

from ackworth.driver import wire
from ackworth.driver.contract import TIMED_OUT, ConnectionLost
from ackworth.driver.wire import Wire

BROKE = 2
AT_ONCE = struct.pack("ii", 1, 0)  # for SO_LINGER: who closes forgets what he has not sent, and says so


@pytest.fixture
def pair() -> Iterator[tuple[Wire, socket.socket]]:
    """A connection, and its other side."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = Wire({"host": "127.0.0.1", "port": listener.getsockname()[1]}, BROKE)
        theirs, _ = listener.accept()
        with contextlib.closing(ours), theirs:
            yield ours, theirs


def wait_until_it_is_broken(ours: Wire) -> None:
    poll = select.poll()
    poll.register(ours.fileno(), 0)
    assert poll.poll(60_000), "nothing broke"


def test_who_sends_into_a_broken_connection_still_gets_what_was_said_before(pair: tuple[Wire, socket.socket]) -> None:
    ours, theirs = pair
    theirs.sendall(b"answers")
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
    theirs.close()
    wait_until_it_is_broken(ours)
    ours.send(b"more")
    ours.send(b"and more")
    assert ours.receive(60) == b"answers"
    with pytest.raises(ConnectionLost, match=r"Connection reset by peer|Broken pipe") as lost:
        ours.receive(60)
    assert lost.value.reason == BROKE


def test_who_reads_nothing_is_given_up_when_all_that_he_said_is_read(
    pair: tuple[Wire, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "SEND_WITHIN", 0.05)
    ours, theirs = pair
    theirs.sendall(b"answers")
    ours.send(bytes(64 << 20))
    assert ours.receive(60) == b"answers"
    with pytest.raises(ConnectionLost, match=r"nothing was read for 0\.05 s") as lost:
        ours.receive(60)
    assert lost.value.reason == TIMED_OUT  # that it takes a new connection proves nothing


def test_an_error_without_a_text_of_the_system_says_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "CONNECT_WITHIN", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = {"host": "127.0.0.1", "port": listener.getsockname()[1], "tls": {}}
        with pytest.raises(ConnectionLost, match=r"127\.0\.0\.1:\d+: .*timed out"):
            wire.reach(address, BROKE)

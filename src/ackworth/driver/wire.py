"""A TCP connection as drivers use it: large sends, large reads, and one error for all that breaks it."""

import contextlib
import re
import select
import socket
import ssl
import time
from collections.abc import Iterable, Iterator
from functools import cache

import numpy as np

from ackworth.driver.contract import (
    TIMED_OUT,
    Address,
    Answers,
    ConnectionLost,
    Outgoing,
    closed_if_it_fails,
    joined,
)
from ackworth.driver.matrix import Matrix

CONNECT_WITHIN = 5.0
SEND_WITHIN = 30.0  # how long the other side may read nothing before it counts as gone
_AT_ONCE = 1 << 18
_MOST_TO_WAIT_FOR = 64 << 10
_LOOK_AGAIN = 0.02
_SOURCE = re.compile(r"^_ssl\.c:\d+: | \(_ssl\.c:\d+\)$")
_AGAIN = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


@cache
def _context(ca: str | None = None, cert: str | None = None, key: str | None = None) -> ssl.SSLContext:
    """The other side is signed by the authority in a file, or by one that the system trusts; we show a certificate."""
    context = ssl.create_default_context(cafile=ca)
    if cert is not None:
        context.load_cert_chain(cert, key)
    return context


class Wire:
    """`broke` is the driver's reason for a connection that broke."""

    def __init__(self, address: Address, broke: int) -> None:
        self._address, self._broke = address, broke
        with self._connecting():
            self._socket = socket.create_connection((address["host"], address["port"]), timeout=CONNECT_WITHIN)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.setblocking(False)
        self._poll = select.poll()
        self._wanted = self._wakes_at = 1  # bytes
        self._broken: ConnectionLost | None = None  # why nothing more can be sent

    def secure(self) -> None:
        """From here on with TLS, if the address says so. Raises ConnectionLost."""
        if (files := self._address.get("tls")) is None:
            return
        with self._connecting():
            self._socket.settimeout(CONNECT_WITHIN)
            self._socket = _context(**files).wrap_socket(self._socket, server_hostname=self._address["host"])
            self._socket.setblocking(False)

    @contextlib.contextmanager
    def _connecting(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            place = f"{self._address['host']}:{self._address['port']}"
            raise self._lost(f"{place}: {_words(error)}") from error

    def send(self, data: bytes | Matrix) -> None:
        """All of it; of a connection that breaks meanwhile `receive` tells, when it has given all that came before."""
        left = memoryview(data if isinstance(data, bytes) else data.data).cast("B")
        while left and self._broken is None:
            try:
                left = left[self._socket.send(left) :]
            except _AGAIN:
                if not self._ready(select.POLLOUT, SEND_WITHIN):
                    self._broken = ConnectionLost(f"nothing was read for {SEND_WITHIN:g} s", TIMED_OUT)
            except OSError as error:
                self._broken = self._lost(_words(error))

    def receive(self, wait: float) -> bytes:
        """What has come; waits at most so many seconds for it; empty if nothing came. Raises ConnectionLost."""
        deadline = Deadline(wait)
        while True:
            if left := deadline.left():
                self._ready(select.POLLIN, min(left, _LOOK_AGAIN))
            data = self._receive_now()
            if data is not None or not left:
                return data or b""

    def await_half(self, answers: int, size: int) -> None:
        """Wake whoever waits when half of so many answers of so many bytes have come: servers answer in drops.

        So an answer may be noticed late, but not later than that half; of n answers that come after each other,
        those from the middle on are noticed in log n steps, the last one when it comes. A waiter looks all the same
        when its time is over, so too large a size delays, and loses nothing.
        """
        self._wanted = min(max(1, answers // 2 * size), _MOST_TO_WAIT_FOR)

    def _receive_now(self) -> bytes | None:
        try:
            data = self._socket.recv(_AT_ONCE)
            if data and isinstance(self._socket, ssl.SSLSocket):
                # What is decrypted already would wake nobody: no poll sees it.
                while pending := self._socket.pending():
                    data += self._socket.recv(pending)
        except _AGAIN:
            if self._broken is not None:
                raise self._broken from None
            return None
        except OSError as error:  # with TLS, the other side says why before it hangs up
            raise self._lost(_words(error)) from error
        if not data:
            raise self._broken or self._lost("closed by the other side")
        return data

    def _ready(self, event: int, seconds: float) -> bool:
        self._poll.register(self.fileno(), event)
        return bool(self._poll.poll(max(0.0, seconds) * 1000))

    def _lost(self, why: str) -> ConnectionLost:
        return ConnectionLost(why, self._broke)

    def fileno(self) -> int:
        """For whoever is about to wait: only then it matters how much wakes him."""
        if self._wanted != self._wakes_at:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, self._wanted)
            self._wakes_at = self._wanted
        return self._socket.fileno()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()


def _words(error: OSError) -> str:
    """Not every error has a text of the system's; those of TLS say where in Python's source they are from."""
    return _SOURCE.sub("", error.strerror or str(error))


def reach(address: Address, broke: int) -> Wire:
    """A connection on which nothing was said yet, with TLS if the address says so. Raises ConnectionLost."""
    wire = Wire(address, broke)
    with closed_if_it_fails(wire):
        wire.secure()
    return wire


class Deadline:
    """So many seconds from now."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._at = time.monotonic() + seconds

    def left(self) -> float:
        return max(0.0, self._at - time.monotonic())

    def check(self, reason: int) -> None:
        """Raises ConnectionLost when they are over: until then there should have been an answer."""
        if not self.left():
            raise ConnectionLost(f"no answer within {self._seconds:g} s", reason)


class InFlight:
    """The messages that are sent and not answered, where an answer has the number of its message."""

    def __init__(self, wire: Wire, answer_size: int, not_sent: int) -> None:
        self._wire, self._answer_size = wire, answer_size
        self._not_sent = not_sent  # the reason if something is answered that was not sent, or twice
        self._first = 0  # the seq of the first message here
        self._open = np.empty(0, np.bool_)

    def add(self, batch: Outgoing) -> None:
        if not len(self._open):
            self._first = batch.first_seq
        self._open = np.concatenate([self._open, np.ones(len(batch.sizes), np.bool_)])
        self._wire.await_half(self._count(), self._answer_size)

    def settle(self, parts: Iterable[Answers]) -> Answers:
        """All of them, one after the other. Raises ConnectionLost."""
        found = joined(map(self._close, parts))
        count = self._count()
        done = int(self._open.argmax()) if count else len(self._open)
        self._first, self._open = self._first + done, self._open[done:]
        self._wire.await_half(count, self._answer_size)
        return found

    def _close(self, part: Answers) -> Answers:
        places, before = part.seqs - self._first, self._count()
        if len(part) and not 0 <= places.min() <= places.max() < len(self._open):
            raise ConnectionLost("an answer to a message that was not sent", self._not_sent)
        self._open[places] = False
        if before - self._count() != len(part):
            raise ConnectionLost("a second answer to a message", self._not_sent)
        return part

    def _count(self) -> int:
        return int(np.count_nonzero(self._open))


class lost_if:  # noqa: N801 - it reads as a function; a generator would cost twice as much
    """What a codec cannot read is a connection that is lost for this reason."""

    def __init__(self, kinds: type[Exception] | tuple[type[Exception], ...], reason: int) -> None:
        self._kinds, self._reason = kinds, reason

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, self._kinds):
            raise ConnectionLost(str(error), self._reason) from error

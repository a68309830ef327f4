"""A TCP connection as drivers use it: large sends, large reads, and one error for all that breaks it."""

import contextlib
import select
import socket
import time

from ackworth.driver.contract import ConnectionLost
from ackworth.driver.matrix import Matrix

CONNECT_WITHIN = 5.0
SEND_WITHIN = 30.0  # how long the other side may read nothing before it counts as gone
_AT_ONCE = 1 << 18
_LOOK_AGAIN = 0.02


class Wire:
    """`broke` is the driver's reason for a connection that broke."""

    def __init__(self, host: str, port: int, broke: int) -> None:
        self._broke = broke
        try:
            self._socket = socket.create_connection((host, port), timeout=CONNECT_WITHIN)
        except OSError as error:
            raise self._lost(f"{host}:{port}: {error.strerror or error}") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setblocking(False)
        self._poll = select.poll()
        self._wake_at = 1

    def send(self, data: bytes | Matrix) -> None:
        """All of it. Raises ConnectionLost."""
        left = memoryview(data if isinstance(data, bytes) else data.data).cast("B")
        while left:
            try:
                left = left[self._socket.send(left) :]
            except BlockingIOError:
                if not self._ready(select.POLLOUT, SEND_WITHIN):
                    raise self._lost(f"nothing was read for {SEND_WITHIN:g} s") from None
            except OSError as error:
                raise self._lost(str(error.strerror)) from error

    def receive(self, wait: float) -> bytes:
        """What has come; waits at most so many seconds for it; empty if nothing came. Raises ConnectionLost."""
        data = self._receive_now()
        deadline = Deadline(wait)
        while data is None and (left := deadline.left()):
            self._ready(select.POLLIN, min(left, _LOOK_AGAIN))
            data = self._receive_now()
        return data or b""

    def wake_at(self, size: int) -> None:
        """Wake whoever waits only when so many bytes have come: fewer, larger reads.

        A waiter looks all the same when its time is over, so too large a number delays, and loses nothing.
        """
        if size != self._wake_at:
            self._wake_at = size
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)

    def _receive_now(self) -> bytes | None:
        try:
            data = self._socket.recv(_AT_ONCE)
        except BlockingIOError:
            return None
        except OSError as error:
            raise self._lost(str(error.strerror)) from error
        if not data:
            raise self._lost("closed by the other side")
        return data

    def _ready(self, event: int, seconds: float) -> bool:
        self._poll.register(self._socket, event)
        return bool(self._poll.poll(max(0.0, seconds) * 1000))

    def _lost(self, why: str) -> ConnectionLost:
        return ConnectionLost(why, self._broke)

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()


class Deadline:
    """So many seconds from now."""

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    def left(self) -> float:
        return max(0.0, self._at - time.monotonic())

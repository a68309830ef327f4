"""Ports that are a run's alone, also while its server is down between a kill and a restart.

A port is reserved by an abstract Unix socket of its name: the kernel gives each name to one process of
a network namespace, and takes it back when that process ends, however it ends. The ports lie below those
that the kernel hands out by itself, so no outgoing connection takes one meanwhile.
"""

import random
import socket
from types import TracebackType
from typing import Self

from ackworth.model.errors import Unavailable

FIRST, LAST = 20_000, 30_000
HOST = "127.0.0.1"


class Ports:
    """A context: what is reserved in it is free again afterwards."""

    def __init__(self) -> None:
        self._reserved: list[socket.socket] = []

    def reserve(self) -> int:
        """A port that nobody listens on and no other run has. Raises Unavailable."""
        for port in random.sample(range(FIRST, LAST), LAST - FIRST):
            if self._take(port):
                return port
        raise Unavailable(f"no free port between {FIRST} and {LAST}: end what listens there")

    def _take(self, port: int) -> bool:
        mark = socket.socket(socket.AF_UNIX)
        try:
            mark.bind(f"\0ackworth-port-{port}")
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((HOST, port))
        except OSError:
            mark.close()
            return False
        self._reserved.append(mark)
        return True

    def close(self) -> None:
        for mark in self._reserved:
            mark.close()
        self._reserved.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

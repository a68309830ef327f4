"""A server that says what a test wants it to say."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

PATIENCE = 60.0  # seconds; a client that neither speaks nor closes is not waited for any longer
Words = bytes | Callable[[bytes], bytes]  # or what becomes of all that was heard so far


@contextlib.contextmanager
def says(*steps: tuple[bytes, Words]) -> Iterator[dict[str, object]]:
    """For each step: when the first has been heard, after that of the last, the second is said. Then it hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            connection.settimeout(PATIENCE)
            with connection, contextlib.suppress(OSError):
                _follow(connection, steps)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield {"host": "127.0.0.1", "port": listener.getsockname()[1]}
        finally:
            thread.join()


def _follow(connection: socket.socket, steps: tuple[tuple[bytes, Words], ...]) -> None:
    heard, at = b"", 0
    for expected, words in steps:
        while (found := heard.find(expected, at)) < 0:
            if not (more := connection.recv(1 << 16)):
                return
            heard += more
        at = found + len(expected)
        connection.sendall(words if isinstance(words, bytes) else words(heard))
    connection.shutdown(socket.SHUT_WR)
    while connection.recv(1 << 16):
        pass

"""Alerts: what somebody should know of, told to the log, to a function of the program's, and to a URL, and kept."""

import contextlib
import json
import logging
import queue
import threading
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal

from brook.errors import BrookError

log = logging.getLogger("brook")

Kind = Literal["slow", "timeout", "dead", "lost"]

# So many wait for a URL that is slow; then the oldest is dropped.
WAITING = 1000
SECONDS = 5.0  # for a URL to answer


@dataclass(frozen=True, slots=True)
class Alert:
    kind: Kind
    group: str
    client: str
    thread: str
    text: str
    at: float  # seconds of the wall clock


class Alerts:
    def __init__(
        self,
        callback: Callable[[Alert], None] | None,
        url: Callable[[], str | None],
        keep: Callable[[Alert], None],
    ) -> None:
        self._keep = keep
        self._callback = callback
        self._url = url
        self._waiting: queue.Queue[tuple[str, Alert] | None] = queue.Queue(WAITING)
        self._poster: threading.Thread | None = None
        self._lock = threading.Lock()

    def tell(self, alert: Alert) -> None:
        """Does not raise, and waits for the database alone: work must go on."""
        log.warning("group %r: %s", alert.group, alert.text)
        try:
            if self._callback is not None:
                self._callback(alert)
        except Exception as error:
            log.error("the callback for alerts raised", exc_info=error)
        if url := self._url():
            self._post_later(url, alert)
        try:
            self._keep(alert)
        except BrookError as error:
            log.error("the alert is not kept: %s", error)

    def close(self) -> None:
        """Let what waits be posted."""
        if self._poster is not None:
            with contextlib.suppress(queue.Full):
                self._waiting.put(None, timeout=SECONDS)
            self._poster.join(2 * SECONDS)

    def _post_later(self, url: str, alert: Alert) -> None:
        with self._lock:
            if self._poster is None:
                self._poster = threading.Thread(target=self._post_all, name="brook-alerts", daemon=True)
                self._poster.start()
            if self._waiting.full():
                self._waiting.get_nowait()
                log.error("%s: too slow for the alerts: the oldest is dropped", url)
            self._waiting.put_nowait((url, alert))

    def _post_all(self) -> None:
        while (each := self._waiting.get()) is not None:
            _post(*each)


def _post(url: str, alert: Alert) -> None:
    body = json.dumps(asdict(alert)).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=SECONDS):
            pass
    except Exception as error:  # whatever there is at that address
        log.error("%s: the alert was not taken: %s", url, error)

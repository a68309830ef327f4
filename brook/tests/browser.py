"""A real browser on a pipe: pages are opened, filled in and measured as a reader would."""

import contextlib
import fcntl
import json
import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)


def _aside(descriptor: int) -> int:
    """The same file under a number that is clear of 3 and 4, which are the browser's ends."""
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)


class Browser:
    """Chromium, spoken to in its debugging protocol: JSON messages that end in a zero byte."""

    def __init__(self, program: str, profile: Path) -> None:
        (their_input, our_output), (our_input, their_output) = os.pipe(), os.pipe()
        ends = [_aside(their_input), _aside(their_output)]
        actions = [(os.POSIX_SPAWN_DUP2, ends[0], 3), (os.POSIX_SPAWN_DUP2, ends[1], 4)]
        quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (1, 2)]
        command = [program, *FLAGS, f"--user-data-dir={profile}"]
        self._output, self._input = _aside(our_output), os.fdopen(_aside(our_input), "rb")
        for descriptor in (their_input, our_output, our_input, their_output):
            os.close(descriptor)
        self.pid = os.posix_spawn(program, command, os.environ, file_actions=[*actions, *quiet], setpgroup=0)
        for descriptor in ends:
            os.close(descriptor)
        self.events: list[dict[str, Any]] = []
        self._last = 0

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        self._last += 1
        message = {"id": self._last, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._output, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._last:
            self.events.append(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return dict(answer["result"])

    def wait_for(self, event: str, since: int = 0) -> None:
        """Among the events from this one on."""
        while not any(seen.get("method") == event for seen in self.events[since:]):
            self.events.append(self._read())

    def _read(self) -> dict[str, Any]:
        data = bytearray()
        while (byte := self._input.read(1)) != b"\0":
            assert byte, "the browser is gone"
            data += byte
        return dict(json.loads(data))

    def close(self) -> None:
        os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._output)
        self._input.close()


@dataclass
class Page:
    """One tab."""

    browser: Browser
    session: str

    @classmethod
    def new(cls, browser: Browser) -> Self:
        browser.events.clear()
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = cls(browser, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        return page

    def go(self, address: str) -> None:
        with self._loaded():
            self.call("Page.navigate", url=address)

    def submit(self, form: str, **values: str) -> None:
        """Fill in the fields of the form that the selector finds, and press its button."""
        filled = "".join(f"form.elements[{json.dumps(name)}].value = {json.dumps(values[name])};" for name in values)
        with self._loaded():
            found = f"const form = document.querySelector({json.dumps(form)});"
            self.ask(f"{{ {found} {filled} form.querySelector('button').click() }}")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **params)

    def ask(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def complained(self) -> list[dict[str, Any]]:
        """Errors of scripts, of the console and of the content policy."""
        loud = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded", "Page.javascriptDialogOpening")
        return [event for event in self.browser.events if event.get("method") in loud]

    @contextlib.contextmanager
    def _loaded(self) -> Iterator[None]:
        """What is done within leads to another page."""
        before = len(self.browser.events)
        yield
        self.browser.wait_for("Page.loadEventFired", before)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        give_up = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        give_up("no chromium found: install Debian's `chromium` to test pages in a real browser")
    found = Browser(program, tmp_path_factory.mktemp("profile"))
    yield found
    found.close()

"""A real browser on a pipe: pages are opened, measured and pointed at as a reader would."""

import fcntl
import json
import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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

    def wait_for(self, event: str) -> None:
        while not any(seen.get("method") == event for seen in self.events):
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
    """One tab at one width."""

    browser: Browser
    session: str

    @classmethod
    def open(cls, browser: Browser, path: Path, *, width: int, height: int = 900, dark: bool = False) -> "Page":
        browser.events.clear()
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = cls(browser, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.call("Emulation.setEmulatedMedia", features=[scheme])
        page.call("Page.navigate", url=path.as_uri())
        browser.wait_for("Page.loadEventFired")
        return page

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **params)

    def ask(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_until(self, condition: str) -> None:
        look = f"new Promise(done => (function look() {{ {condition} ? done() : requestAnimationFrame(look) }})())"
        self.call("Runtime.evaluate", expression=look, awaitPromise=True)

    def point_at(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key: str) -> None:
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def complained(self) -> list[dict[str, Any]]:
        """Errors of scripts, of the console and of the content policy."""
        loud = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded", "Page.javascriptDialogOpening")
        return [event for event in self.browser.events if event.get("method") in loud]

    def requests(self) -> list[str]:
        sent = [event for event in self.browser.events if event.get("method") == "Network.requestWillBeSent"]
        return [str(event["params"]["request"]["url"]) for event in sent]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        give_up = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        give_up("no chromium found: install Debian's `chromium` to test pages in a real browser")
    found = Browser(program, tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture
def open_page(browser: Browser) -> Any:
    def opener(path: Path, **how: Any) -> Page:
        return Page.open(browser, path, **how)

    return opener

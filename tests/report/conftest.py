"""Reports in a real browser: opened at a width, measured and pointed at as a reader would."""

from pathlib import Path
from typing import Any

import browser as web
import pytest

browser = web.browser


class Page(web.Page):
    """One tab at one width."""

    @classmethod
    def open(cls, browser: web.Browser, path: Path, *, width: int, height: int = 900, dark: bool = False) -> "Page":
        page = cls.new(browser)
        page.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.call("Emulation.setEmulatedMedia", features=[scheme])
        page.go(path.as_uri())
        return page

    def wait_until(self, condition: str) -> None:
        look = f"new Promise(done => (function look() {{ {condition} ? done() : requestAnimationFrame(look) }})())"
        self.call("Runtime.evaluate", expression=look, awaitPromise=True)

    def point_at(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key: str) -> None:
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def requests(self) -> list[str]:
        sent = [event for event in self.browser.events if event.get("method") == "Network.requestWillBeSent"]
        return [str(event["params"]["request"]["url"]) for event in sent]


@pytest.fixture
def open_page(browser: web.Browser) -> Any:
    def opener(path: Path, **how: Any) -> Page:
        return Page.open(browser, path, **how)

    return opener

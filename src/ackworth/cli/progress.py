"""Progress on standard error: one line that moves on a terminal, plain lines elsewhere, nothing if quiet."""

import os
import sys
import time

CLEAR = "\r\033[K"  # what stands in the line of a terminal
_EVERY = 5.0  # seconds between plain lines


class Progress:
    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._title = ""
        self._began = self._said = time.monotonic()
        self._moving = False
        self._last: tuple[float, int, int] = (self._began, 0, 0)

    def say(self, line: str) -> None:
        """A line that stays."""
        if not self._quiet:
            self._clear()
            print(line, file=sys.stderr, flush=True)

    def begin(self, title: str) -> None:
        self._title = title
        self._began = self._said = time.monotonic()
        self._last = (self._began, 0, 0)

    def happened(self, what: str) -> None:
        self.say(f"{self._title}: {what} after {time.monotonic() - self._began:.1f} s")

    def working(self, what: str) -> None:
        self.move(f"{self._title}: {what}")

    def share(self, what: str, done: int, of: int) -> None:
        self.working(f"{what}, {done} of {of} tasks")

    def counts(self, phase: str, *, sent: int, answered: int, delivered: int) -> None:
        now = time.monotonic()
        before, *last = self._last
        rates = [(new - old) / (now - before or 1) for new, old in zip((answered, delivered), last, strict=True)]
        self._last = (now, answered, delivered)
        self.working(
            f"{phase}, {now - self._began:.0f} s, sent {sent:,}, answered {answered:,} ({rates[0]:,.0f}/s), "
            f"delivered {delivered:,} ({rates[1]:,.0f}/s)"
        )

    def move(self, line: str) -> None:
        """A line that the next one replaces; where lines stay, only now and then."""
        if self._quiet:
            return
        if self._terminal:
            self._clear()
            print(line[: _columns() - 1], end="", file=sys.stderr, flush=True)
            self._moving = True
        elif time.monotonic() - self._said >= _EVERY:
            self._said = time.monotonic()
            print(line, file=sys.stderr, flush=True)

    def end(self, remarks: list[str]) -> None:
        self.say(f"{self._title}: ended after {time.monotonic() - self._began:.1f} s")
        for remark in remarks:
            self.say(f"{self._title}: {remark}")

    def _clear(self) -> None:
        if self._moving:
            print(CLEAR, end="", file=sys.stderr)
            self._moving = False


def _columns() -> int:
    """Of the terminal: a line that it breaks in two could not be cleared."""
    return os.get_terminal_size(sys.stderr.fileno()).columns or 80

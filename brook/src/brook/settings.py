"""Settings: kept in the database, typed, the same for all processes, and changed while they run.

Each process looks at the table once in MAX_AGE seconds at most. What a program gives to Brook() or to a consumer
stands in for the setting of the same name.
"""

import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from brook.checks import is_number
from brook.errors import BadSetting, BrookError
from brook.retrying import LADDER
from brook.stores.base import Store

MAX_AGE = 1.0

log = logging.getLogger("brook")


@dataclass(frozen=True)
class Settings:
    auto_create: bool = True  # sends create the topics that they name
    max_body: int = 4 * 1024 * 1024  # bytes
    lease: float = 60.0  # seconds for which a batch is its client's, unless renewed
    threads: int = 5  # of a consumer
    batch: int = 10  # messages that a handler gets at a time
    timeout: float = 1800.0  # seconds that a handler may take for a batch
    ladder: tuple[float, ...] = LADDER  # seconds before each retry
    slow: float = 60.0  # seconds after which a handler is worth an alert
    alert_url: str | None = None  # alerts are posted to it, as JSON
    clean_every: float | None = None  # seconds between two cleanings by the consumers; None: only clean() cleans
    keep_seconds: float | None = None  # older messages are deleted by cleaning; None: they stay
    keep_bytes: int | None = None  # of each topic; the oldest beyond are deleted by cleaning; None: they stay


def _flag(value: Any) -> bool:
    _wanted(isinstance(value, bool), "true or false")
    return bool(value)


def _whole(least: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        _wanted(isinstance(value, int) and not isinstance(value, bool) and value >= least, f"a number from {least} on")
        return int(value)

    return check


def _seconds(value: Any) -> float:
    """As long as a thread can wait."""
    _wanted(is_number(value) and 0 < value <= threading.TIMEOUT_MAX, "a number of seconds above 0, and not without end")
    return float(value)


def _ladder(value: Any) -> tuple[float, ...]:
    _wanted(isinstance(value, list | tuple), "a list of seconds")
    return tuple(_seconds(each) for each in value)


def _web_address(value: Any) -> str:
    _wanted(isinstance(value, str) and value.startswith(("http://", "https://")), "an address that begins with http")
    return str(value)


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "auto_create": _flag,
    "max_body": _whole(1),
    "lease": _seconds,
    "threads": _whole(0),
    "batch": _whole(1),
    "timeout": _seconds,
    "ladder": _ladder,
    "slow": _seconds,
    "alert_url": _web_address,
    "clean_every": _seconds,
    "keep_seconds": _seconds,
    "keep_bytes": _whole(0),
}


def checked(name: str, value: Any) -> Any:
    """The value in its type, or BadSetting."""
    if name not in _CHECKS:
        raise BadSetting(f"{name}: no such setting: there are {', '.join(_CHECKS)}")
    try:
        return _CHECKS[name](value)
    except _Unfit as wanted:
        raise BadSetting(f"{name}={value!r}: give {wanted}") from None


class LiveSettings:
    def __init__(self, store: Store, overrides: Mapping[str, Any], clock: Callable[[], float]) -> None:
        self._store = store
        self._overrides = overrides
        self._clock = clock
        self._look()

    @property
    def now(self) -> Settings:
        """While they cannot be read they stay as they were: whoever asks has more to do than to look at settings."""
        if abs(self._clock() - self._read) > MAX_AGE:
            try:
                self._look()
            except BrookError as error:
                log.warning("settings stay as they were: %s", error)
        return self._settings

    def change(self, name: str, value: object) -> None:
        if value is not None:
            value = checked(name, value)
        elif name not in _CHECKS:
            checked(name, value)
        self._store.set_setting(name, None if value is None else json.dumps(value))
        self._look()

    def _look(self) -> None:
        self._read = self._clock()
        stored = {name: _parsed(name, text) for name, text in self._store.settings().items()}
        known = {name: value for name, value in stored.items() if value is not None}
        self._settings = Settings(**{**known, **self._overrides})


def _parsed(name: str, text: str) -> Any:
    """None if it means nothing: whoever wrote it did not ask us, and messages must go on."""
    try:
        return checked(name, json.loads(text))
    except (BadSetting, ValueError) as error:
        log.error("table brook_setting: %s: taking the default", error)
        return None


class _Unfit(Exception):
    """A value that a setting cannot have; says which it can."""


def _wanted(right: bool, wanted: str) -> None:
    if not right:
        raise _Unfit(wanted)

"""Numbers and foreign text as a reader sees them: the same value looks the same in every output."""

import re
from collections.abc import Callable, Mapping
from typing import Any

UNKNOWN = "unknown"
SYMBOLS = {"held": "✓", "broken": "✗", "unknown": "?"}

# What no output can carry: control characters (a terminal would obey them, XML forbids them), halves
# of surrogate pairs (UTF-8 has none) and marks that turn the direction of the text around them.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")

_DURATIONS = ((1, "ns"), (1e3, "µs"), (1e6, "ms"))


def clean(text: str) -> str:
    return _UNPRINTABLE.sub("\ufffd", text)


def count(number: float | None) -> str:
    if number is None:
        return UNKNOWN
    return f"{number:,}" if isinstance(number, int) else significant(number)


def significant(number: float) -> str:
    """Three digits that count; whole digits are never rounded away, and a little is never shown as nothing."""
    size = abs(number)
    if 0 < size < 0.01:
        return "<0.01"
    return f"{number:,.{0 if size >= 99.95 or size == 0 else 1 if size >= 9.995 else 2}f}"


def duration(nanoseconds: float | None, none: str = UNKNOWN) -> str:
    if nanoseconds is None:
        return none
    for scale, unit in _DURATIONS:
        if abs(nanoseconds) / scale < 999.5:
            return f"{significant(nanoseconds / scale)} {unit}"
    return seconds(nanoseconds / 1e9)


def seconds(number: float | None, none: str = UNKNOWN) -> str:
    if number is None:
        return none
    return duration(number * 1e9) if abs(number) < 0.9995 else f"{significant(number)} s"


def rate(per_second: float | None) -> str:
    return UNKNOWN if per_second is None else f"{significant(per_second)}/s"


def size(number: int | None) -> str:
    return UNKNOWN if number is None else f"{significant(number / 2**20)} MiB"


def share(part: int, whole: int) -> str:
    """A percentage that says 0 or 100 only when it is exactly that."""
    if whole == 0:
        return "none"
    percent = 100 * part / whole
    if part == whole or part == 0:
        return f"{percent:.0f}%"
    return "<0.01%" if percent < 0.01 else ">99.99%" if percent > 99.99 else f"{percent:.2f}%"


def compact(number: float) -> str:
    """For an axis: 250k, 1.5M."""
    for scale, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= scale:
            return f"{number / scale:g}{unit}"
    return f"{number:g}"


def words(key: str) -> str:
    """A key of the results as words: 'acked_per_second' is 'acked per second'."""
    return key.replace("_", " ")


_UNITS: dict[str, Callable[[Any], str]] = {
    "_bytes": size,
    "_ms": lambda milliseconds: duration(milliseconds * 1e6),
    "_seconds": seconds,
}


def quantity(key: str, value: object) -> tuple[str, str]:
    """A key and its value as words; the unit that ends the key moves to the value."""
    if value is None:
        return words(key), UNKNOWN
    if isinstance(value, bool) or not isinstance(value, int | float):
        return words(key), str(value)
    for ending, show in _UNITS.items():
        if key.endswith(ending):
            return words(key.removesuffix(ending)), show(value)
    return words(key), count(value)


def fields(record: Mapping[str, object]) -> dict[str, Any]:
    """A record of the results, for code that picks its fields by name."""
    return dict(record)


def outline(value: object, depth: int = 0) -> str:
    """Plain data as an indented outline, close to the YAML that a plan is written in."""
    indent = "  " * depth
    if isinstance(value, dict) and value:
        return "\n".join(f"{indent}{key}:{_below(item, depth)}" for key, item in value.items())
    if isinstance(value, list | tuple) and value:
        return "\n".join(f"{indent}-{_below(item, depth)}" for item in value)
    return indent + _scalar(value)


def _below(value: object, depth: int) -> str:
    if isinstance(value, list | tuple) and not any(isinstance(item, dict | list | tuple) for item in value):
        return f" [{', '.join(map(_scalar, value))}]"
    if isinstance(value, dict | list | tuple) and value:
        return "\n" + outline(value, depth + 1)
    return " " + _scalar(value)


def _scalar(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)

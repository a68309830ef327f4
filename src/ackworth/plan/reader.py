"""From a tree to frozen dataclasses: each key has a reader, and a reader says what it takes.

A reader is a function Tree -> value that raises `Wrong` with what it wanted. `words` on a reader is
that same text, which the generated reference shows.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import sys
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field
from typing import Any, TypeVar

from ackworth.model.errors import BadInput
from ackworth.model.words import nearest
from ackworth.plan.tree import Tree

T = TypeVar("T")


class Wrong(Exception):
    """The value is not what the reader wants; the caller knows the key and the place."""


@dataclass(frozen=True)
class Reader:
    words: str  # what it takes: "a whole number of at least 1"
    read: Callable[[Tree, str], Any]  # the value, and the key that it stands at
    nested: type | None = None  # the dataclass that it makes, for the reference


def key(means: str, reader: Reader, **default: Any) -> Any:
    """A field of a plan's dataclass: what it means, how it is read, and its default."""
    return field(metadata={"means": means, "reader": reader}, **default)


def read(cls: type[T], tree: Tree, path: str = "") -> T:
    """The dataclass from a mapping. Raises BadInput: file, line, key, value, nearest valid key."""
    children = tree.mapping
    if children is None:
        raise BadInput(f"{tree.place}: {path or 'a plan'} is {shown(tree)}, but must be a mapping of keys")
    fields = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for name, child in children.items():
        if name not in fields:
            raise BadInput(
                f"{child.place}: unknown key '{_join(path, name)}' (value {shown(child)}){nearest(name, fields)}"
            )
    values = {
        name: _field(fields[name].metadata["reader"], child, _join(path, name)) for name, child in children.items()
    }
    for name, f in fields.items():
        if name not in values and f.default is MISSING and f.default_factory is MISSING:
            raise BadInput(
                f"{tree.place}: key '{_join(path, name)}' is missing: it must be {f.metadata['reader'].words}"
            )
    try:
        return cls(**values)
    except ValueError as error:
        raise BadInput(f"{tree.place}: {path or 'plan'}: {error}") from error


def _field(reader: Reader, tree: Tree, path: str) -> Any:
    try:
        return reader.read(tree, path)
    except Wrong as wrong:
        raise BadInput(
            f"{tree.place}: key '{path}' is {shown(tree)}, but must be {str(wrong) or reader.words}"
        ) from wrong


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def shown(tree: Tree) -> str:
    text = "nothing" if tree.value is None else repr(tree.plain())
    return text if len(text) <= 60 else f"{text[:57]}..."


# ---- readers ---------------------------------------------------------------------------------------


def _reader(words: str) -> Callable[[Callable[[Tree], Any]], Reader]:
    return lambda function: Reader(words, lambda tree, _: function(tree))


@_reader("a text")
def text(tree: Tree) -> str:
    if not isinstance(tree.value, str):
        raise Wrong
    return tree.value


@_reader("a name of letters, digits, spaces and . _ - alone, of 80 characters at most")
def name(tree: Tree) -> str:
    """It is also a part of the name of a directory."""
    if not isinstance(tree.value, str) or not re.fullmatch(r"\w[\w .-]{0,79}", tree.value):
        raise Wrong
    return tree.value


@_reader("true or false")
def boolean(tree: Tree) -> bool:
    if not isinstance(tree.value, bool):
        raise Wrong
    return tree.value


def whole(minimum: int, most: int = sys.maxsize) -> Reader:
    def parse(tree: Tree, _: str) -> int:
        if not isinstance(tree.value, int) or isinstance(tree.value, bool) or not minimum <= tree.value <= most:
            raise Wrong
        return tree.value

    bounds = f"at least {minimum}" if most == sys.maxsize else f"{minimum} to {most:,}"
    return Reader(f"a whole number of {bounds}", parse)


@_reader("a number above 0")
def positive(tree: Tree) -> float:
    if isinstance(tree.value, bool) or not isinstance(tree.value, int | float) or not 0 < tree.value < sys.maxsize:
        raise Wrong
    return float(tree.value)


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(value: object) -> float | None:
    """'5m' is 300.0; None if it is no duration."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)", str(value))
    return float(match[1]) * _UNITS[match[2]] if match else None


@_reader("a duration such as 500ms, 30s, 5m or 2h")
def duration(tree: Tree) -> float:
    found = seconds(tree.value)
    if found is None:
        raise Wrong
    return found


@dataclass(frozen=True)
class RateOf:
    """A part of what another case of the plan reached, on the same broker at the same settings."""

    share: float
    case: str


@_reader("'max', a number of messages a second, or a part of what an earlier case reached, such as '50% of full'")
def rate(tree: Tree) -> float | RateOf | None:
    if tree.value == "max":
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)% of (\S+)", str(tree.value))
    if match and float(match[1]) > 0:
        return RateOf(float(match[1]) / 100, match[2])
    return float(positive.read(tree, ""))


def choice(*values: str) -> Reader:
    def parse(tree: Tree, _: str) -> str:
        if tree.value not in values:
            near = difflib.get_close_matches(str(tree.value), values, n=1, cutoff=0.5)
            raise Wrong(f"one of {', '.join(values)}" + (f" (did you mean '{near[0]}'?)" if near else ""))
        return str(tree.value)

    return Reader(f"one of {', '.join(values)}", parse)


@_reader("a mapping of names to values")
def settings(tree: Tree) -> dict[str, Any]:
    if tree.mapping is None:
        raise Wrong
    return {name: child.plain() for name, child in tree.mapping.items()}


@_reader("a list of tables, each with source, hardware and rows such as {what: acked, value: 8031671}")
def tables(tree: Tree) -> tuple[dict[str, Any], ...]:
    data = tree.plain()
    if not _are_mappings(data, {"source", "hardware", "rows"}):
        raise Wrong
    if not all(_are_mappings(table["rows"], {"what", "value"}) for table in data):
        raise Wrong
    return tuple(data)


def _are_mappings(data: Any, keys: set[str]) -> bool:
    return isinstance(data, list) and all(isinstance(each, dict) and keys <= set(each) for each in data)


@_reader("a list of lists of numbers from 0 on, such as [[0], [0, 1]]")
def lists(tree: Tree) -> tuple[tuple[int, ...], ...]:
    data = tree.plain()
    if not isinstance(data, list) or not all(isinstance(each, list) and each for each in data):
        raise Wrong
    if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for each in data for n in each):
        raise Wrong
    return tuple(tuple(each) for each in data)


def one(cls: type) -> Reader:
    return Reader("a mapping of keys", lambda tree, path: read(cls, tree, path), cls)


def many(cls: type) -> Reader:
    def parse(tree: Tree, path: str) -> Any:
        if not isinstance(tree.value, list):
            raise Wrong
        return tuple(read(cls, child, f"{path}.{i}") for i, child in enumerate(tree.value))

    return Reader("a list of mappings", parse, cls)

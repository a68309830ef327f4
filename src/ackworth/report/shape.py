"""Whether plain data, as JSON gives it, has the shape that a TypedDict declares."""

from collections.abc import Iterable
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

_WORDS = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "an object",
    NoneType: "null",
}


def mismatch(value: object, shape: Any, where: str) -> str | None:
    """The first place where a value has not the declared shape, in words; None if it has."""
    if shape is Any:
        return None
    if is_typeddict(shape):
        return _in_object(value, shape, where)
    if isinstance(shape, UnionType):
        choices = get_args(shape)
        return None if any(mismatch(value, c, where) is None for c in choices) else _not_a(value, choices, where)
    kind = get_origin(shape) or shape
    return _in_items(value, shape, where) if _is_a(value, kind) else _not_a(value, (kind,), where)


def _in_object(value: object, shape: Any, where: str) -> str | None:
    if not isinstance(value, dict):
        return _not_a(value, (dict,), where)
    if missing := sorted(shape.__required_keys__ - value.keys()):
        return f"{where} has no {missing[0]!r}"
    hints = get_type_hints(shape)
    return _first(mismatch(value[key], hints[key], f"{where}.{key}") for key in hints if key in value)


def _in_items(value: object, shape: Any, where: str) -> str | None:
    item = get_args(shape)[-1:] or (Any,)
    if isinstance(value, list):
        return _first(mismatch(v, item[0], f"{where}[{index}]") for index, v in enumerate(value))
    if isinstance(value, dict):
        return _first(mismatch(v, item[0], f"{where}.{key}") for key, v in value.items())
    return None


def _is_a(value: object, kind: type) -> bool:
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, int | float) if kind is float else isinstance(value, kind)


def _not_a(value: object, kinds: Iterable[Any], where: str) -> str:
    wanted = " or ".join(_WORDS[get_origin(kind) or kind] for kind in kinds)
    return f"{where} is {value!r:.40}, not {wanted}"


def _first(found: Iterable[str | None]) -> str | None:
    return next((wrong for wrong in found if wrong), None)

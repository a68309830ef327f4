"""What is to be sent is checked where it comes in, before it can harm those whose messages go with it.

Otherwise a store would fail halfway, or take what nobody can receive.
"""

import json
from collections.abc import Iterable, Mapping, Sequence

from brook.errors import BadMessage
from brook.packing import Extra, Run


def is_text(value: object) -> bool:
    """Whether it is a string, not empty, that every database can hold."""
    try:
        return isinstance(value, str) and bool(value.encode())
    except UnicodeEncodeError:  # half of a surrogate pair
        return False


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def require_bytes(bodies: Sequence[object]) -> None:
    """BadMessage unless each of them holds single bytes in a row."""
    if set(map(type, bodies)) <= {bytes}:
        return
    for body in bodies:
        if not _holds_bytes(body):
            raise BadMessage(f"{body!r:.100}: a body must be bytes: encode it")


def as_extra(key: str | None, tags: Iterable[str], properties: Mapping[str, str] | None) -> Extra | None:
    """None if there is nothing to keep beside the body."""
    if key is None and not tags and not properties:
        return None
    try:
        extra = key, _listed(tags), dict(properties or {})
        "".join(["" if key is None else key, *extra[1], *extra[2], *extra[2].values()]).encode()
    except (TypeError, ValueError) as error:
        given = f"key={key!r:.100}, tags={tags!r:.100}, properties={properties!r:.100}"
        raise BadMessage(f"{given}: give text in UTF-8, a list of text, and a mapping of text to text") from error
    return extra


def require_extras(run: Run) -> None:
    """BadMessage unless the run, which came packed, has key, tags and properties or null for each message."""
    if run.extras is None:
        return
    try:
        extras = json.loads(run.extras)
        complete = len([extra and as_extra(*extra) for extra in extras]) == run.messages
    except (TypeError, ValueError):
        complete = False
    if not complete:
        raise BadMessage(
            f"extras={run.extras!r:.100}: give a JSON list of {run.messages}, [key, tags, properties] or null"
        )


def _holds_bytes(body: object) -> bool:
    try:
        view = memoryview(body)  # type: ignore[arg-type]
    except TypeError:
        return False
    return view.c_contiguous and view.ndim == view.itemsize == 1


def _listed(tags: Iterable[str]) -> tuple[str, ...]:
    if isinstance(tags, str):
        raise TypeError("one string is no list of tags")
    return tuple(tags)

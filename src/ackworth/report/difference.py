"""What differs between two things that were recorded, key by key."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

ABSENT = "not there"


@dataclass(frozen=True)
class Difference:
    key: str  # dotted
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.key}: {self.before} → {self.after}"


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """In the order of the first, then what only the second has."""
    old, new = dict(_flat(before, "")), dict(_flat(after, ""))
    return [
        Difference(key, old.get(key, ABSENT), new.get(key, ABSENT))
        for key in dict.fromkeys([*old, *new])
        if old.get(key, ABSENT) != new.get(key, ABSENT)
    ]


def _flat(value: Any, key: str) -> Iterator[tuple[str, str]]:
    """Every leaf with its dotted key; an empty mapping or list is one too."""
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    found = [leaf for name, child in items for leaf in _flat(child, f"{key}.{name}" if key else str(name))]
    yield from found or [(key, str(value))]

"""The measurements, one a file. Adding a file is all it takes: see `pipeline.measurement`."""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache

from ackworth.pipeline.measurement import Measurement


def measurements() -> Mapping[str, type[Measurement]]:
    """All measurements by name, each after those that it needs."""
    return _found(tuple(__path__))


@cache
def _found(folders: tuple[str, ...]) -> Mapping[str, type[Measurement]]:
    found: dict[str, type[Measurement]] = {}
    for module in sorted(pkgutil.iter_modules(folders), key=lambda m: m.name):
        content = vars(importlib.import_module(f"{__name__}.{module.name}"))
        for thing in content.values():
            if (
                isinstance(thing, type)
                and issubclass(thing, Measurement)
                and thing.__module__.startswith(f"{__name__}.")
            ):
                found[thing.name] = thing
    return _in_order(found)


def _in_order(found: dict[str, type[Measurement]]) -> dict[str, type[Measurement]]:
    ordered: dict[str, type[Measurement]] = {}

    def place(name: str) -> None:
        for needed in found[name].needs:
            if needed not in ordered:
                place(needed)
        ordered[name] = found[name]

    for name in found:
        place(name)
    return ordered

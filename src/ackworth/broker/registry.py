"""Finds the brokers: every file of this package that has a BROKER, and whatever a test adds."""

import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any

import ackworth.broker
from ackworth.broker.contract import Attachable, Broker
from ackworth.model.errors import BadInput
from ackworth.model.words import nearest

_added: dict[str, Broker] = {}


def add(broker: Broker) -> None:
    _added[broker.name] = broker


def brokers() -> dict[str, Broker]:
    found: dict[str, Broker] = {}
    for module in pkgutil.iter_modules(ackworth.broker.__path__):
        broker = getattr(importlib.import_module(f"ackworth.broker.{module.name}"), "BROKER", None)
        if broker is not None:
            found[broker.name] = broker
    return {**found, **_added}


def find(name: str) -> Broker:
    known = brokers()
    if name not in known:
        raise BadInput(f"unknown broker '{name}'{nearest(name, known)}")
    return known[name]


def attachable(url: str) -> Broker:
    """The broker that a URL leads to, by how it begins."""
    known = schemes()
    scheme, there, _ = url.partition("://")
    if not there or scheme not in known:
        begins = f" {scheme}://…" if there else ""  # what has no scheme may be a secret
        raise BadInput(
            f"--attach{begins}: no broker is reached so: begin with one of {', '.join(f'{s}://' for s in known)}"
        )
    return known[scheme]


def schemes() -> dict[str, Broker]:
    """How URLs begin, and whose they are."""
    return {
        scheme: broker for broker in brokers().values() if isinstance(broker, Attachable) for scheme in broker.schemes
    }


def levels(broker: Broker) -> list[dict[str, Any]]:
    """The settings that a table of what each costs has a row for: the defaults, and each other value on its own."""
    priced = {name: setting for name, setting in broker.settings.items() if setting.priced}
    defaults = {name: setting.default for name, setting in priced.items()}
    others = [
        {**defaults, name: value}
        for name, setting in priced.items()
        for value in setting.values
        if value != setting.default
    ]
    return [defaults, *others]


def settle(broker: Broker, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The broker's settings, defaults filled in. Raises BadInput for what it does not know."""
    for name, value in asked.items():
        if name not in broker.settings:
            raise BadInput(f"broker '{broker.name}' has no setting '{name}'{nearest(name, broker.settings)}")
        allowed = broker.settings[name].values
        if not any(value == each and type(value) is type(each) for each in allowed):  # true is not 1
            raise BadInput(f"{broker.name}: {name} is {value!r}, but must be one of {', '.join(map(str, allowed))}")
    return {**{name: setting.default for name, setting in broker.settings.items()}, **asked}

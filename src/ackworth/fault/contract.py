"""What a fault is, and how one is found by its name. A fault's file has one `FAULT`."""

import importlib
import pkgutil
from collections.abc import Callable
from typing import Protocol

import ackworth.fault
from ackworth.broker.contract import Node
from ackworth.broker.disk import Disk
from ackworth.model.errors import BadInput
from ackworth.model.words import nearest

Mend = Callable[[], None]  # what has to be done before the node can run again


class Fault(Protocol):
    name: str
    summary: str
    needs_disk: bool  # the node's data must be on a disk of its own
    ends_node: bool  # the node is down afterwards and must be started again

    def why_not(self) -> str | None:
        """Why it cannot be had on this machine; None if it can."""
        ...

    def strike(self, node: Node, disk: Disk | None) -> Mend:
        """Break the node; returns when it is broken, with what mends it."""
        ...


def faults() -> dict[str, Fault]:
    modules = (
        importlib.import_module(f"ackworth.fault.{m.name}") for m in pkgutil.iter_modules(ackworth.fault.__path__)
    )
    found = (getattr(module, "FAULT", None) for module in modules)
    return {fault.name: fault for fault in found if fault is not None}


def find(name: str) -> Fault:
    known = faults()
    if name not in known:
        raise BadInput(f"unknown fault '{name}'{nearest(name, known)}")
    return known[name]


def nothing_to_mend() -> None:
    """The node can be started as it is."""

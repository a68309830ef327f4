"""What a broker is: how it is had, set up, started, watched and stopped, and what it claims.

A broker's file has one `BROKER`. A managed broker gives nodes; each node has a directory for its data,
which may lie on a disk of its own whose power can be cut. Where the broker is a library, as with a
database file, the node is every process that has its files open, and starting it is no work.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ackworth.model.verdict import Claims

SINGLE = "single"  # the topology that every broker has; a plan means it if it names none


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A setting of a broker that a plan may choose."""

    means: str
    values: tuple[Any, ...]  # what it may be
    default: Any  # the safest of them
    priced: bool = True  # whether an ack is worth more or less by it, so that a price list has a row for each value


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a node lives."""

    data: Path  # what must survive
    logs: Path  # what the node prints; never on a disk that is cut
    ports: Mapping[str, int] = field(default_factory=dict)  # by the names of Broker.ports; this node's alone


class Node(Protocol):
    """One node of a running broker."""

    name: str

    def start(self) -> None:
        """Begin to run; what is on the disk is what there is. Raises BrokerFailed."""
        ...

    def processes(self) -> list[int]:
        """The pids of everything that is the node now."""
        ...

    def look(self) -> None:
        """Raises BrokerFailed if it was started and has ended by itself."""
        ...

    def stop(self) -> None:
        """End in an orderly way, as an operator would."""
        ...


@runtime_checkable
class Truncatable(Protocol):
    """A node whose stored messages an operator can delete behind the broker's back."""

    def truncate(self) -> None:
        """Delete every message that is stored; all else stays."""
        ...


@runtime_checkable
class Joining(Protocol):
    """A node that is of use only after others have let it in, and given it what it missed."""

    def joined(self) -> bool:
        """Whether it takes part."""
        ...


@runtime_checkable
class Repairable(Protocol):
    """A node whose vendor has a tool for data that it refuses to start with."""

    def repair(self) -> str:
        """Run the tool on the node, which is down, and say what it said. Raises BrokerFailed."""
        ...


class Broker(Protocol):
    """A kind of broker."""

    name: str
    summary: str
    driver: str  # the wire protocol: a file of ackworth.driver
    embedded: bool  # the broker is a library inside the workers: it dies with them, and they with it
    topologies: tuple[str, ...]
    ports: tuple[str, ...]  # names for the TCP ports that each node listens on
    settings: Mapping[str, Setting]
    overhead: float  # bytes on disk a message costs beyond its body, to check for space beforehand
    growth: float  # how many times the bodies' bytes may be on disk at once (logs, compaction)

    def missing(self, topology: str = SINGLE) -> str | None:
        """Why it cannot run here in this topology, and what to do about it; None if it can."""
        ...

    def version(self) -> str: ...

    def claims(self, settings: Mapping[str, Any], topology: str = SINGLE) -> Claims: ...

    def nodes(self, topology: str) -> Sequence[str]:
        """The names of the nodes."""
        ...

    def build(self, places: Mapping[str, Place], settings: Mapping[str, Any]) -> Sequence[Node]:
        """The nodes, one at each place, in the order in which they are started. They may know of each other."""
        ...

    def address(self, places: Mapping[str, Place], settings: Mapping[str, Any]) -> dict[str, Any]:
        """What the driver needs to reach the nodes."""
        ...


class OneByOne(ABC):
    """A broker whose nodes know nothing of each other, such as one that has only one."""

    @abstractmethod
    def node(self, name: str, place: Place, settings: Mapping[str, Any]) -> Node:
        """A node, at its place."""

    def build(self, places: Mapping[str, Place], settings: Mapping[str, Any]) -> list[Node]:
        return [self.node(name, place, settings) for name, place in places.items()]


@runtime_checkable
class Selective(Protocol):
    """A broker some of whose settings not every version has."""

    def lacks(self, settings: Mapping[str, Any]) -> str | None:
        """Why these settings cannot be had here, and what to do about it; None if they can."""
        ...


@runtime_checkable
class Attachable(Protocol):
    """A broker of which a user's own can be attached to. Its driver must be a `Guest`."""

    schemes: Mapping[str, int]  # how the URLs begin, and the usual port: without TLS, with TLS

    def attached(self, url: str, settings: Mapping[str, Any], name: str) -> dict[str, Any]:
        """What the driver needs to reach the broker at a URL (see `urls`), credentials included. Raises BadInput.

        name: of whatever the trial makes there, if it is not a topic or a group: nobody else's is called so.
        """
        ...


@runtime_checkable
class Installable(Protocol):
    """A broker that can be brought onto this machine."""

    def install(self) -> str:
        """Install it, and say what was done. Raises Unavailable."""
        ...

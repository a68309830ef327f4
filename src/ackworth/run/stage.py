"""The broker of a trial as it stands on this machine: its nodes, their places, their disks."""

import contextlib
import random
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ackworth.broker import disk as disks
from ackworth.broker.contract import Broker, Joining, Node, Place, Repairable
from ackworth.broker.disk import Disk
from ackworth.broker.ports import Ports
from ackworth.broker.process import kill_all
from ackworth.fault.contract import Fault, Mend
from ackworth.model.errors import BadInput, Unavailable
from ackworth.run import samples


class Stage:
    """A context: inside it the nodes run; afterwards they, their disks and their data are gone."""

    def __init__(
        self, directory: Path, broker: Broker, settings: Mapping[str, Any], topology: str, faults: Sequence[Fault]
    ) -> None:
        self._directory, self._broker, self._settings, self._topology = directory, broker, settings, topology
        self._faults = faults
        self.own_disks = any(fault.needs_disk for fault in faults)
        self._disks: dict[str, Disk] = {}
        self.nodes: dict[str, Node] = {}
        self._ports = Ports()
        self._struck: set[str] = set()  # nodes that are down on purpose

    def __enter__(self) -> Self:
        for fault in self._faults:
            if reason := fault.why_not():
                raise Unavailable(f"the fault '{fault.name}' cannot be had here: {reason}")
        if reason := self._broker.missing(self._topology):
            raise Unavailable(f"the broker '{self._broker.name}' cannot run here: {reason}")
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._ports)
            stack.callback(shutil.rmtree, self._directory / "nodes", ignore_errors=True)
            self._places = {name: self._place(name, stack) for name in self._broker.nodes(self._topology)}
            self.nodes = {node.name: node for node in self._broker.build(self._places, self._settings)}
            for node in self.nodes.values():
                stack.callback(self._end, node)
                node.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _end(self, node: Node) -> None:
        """Its data goes with it: to end in an orderly way, and to save what nobody will read, takes time."""
        kill_all(node.processes)
        node.stop()

    def _place(self, name: str, stack: contextlib.ExitStack) -> Place:
        folder = self._directory / "nodes" / name
        if self.own_disks:
            # The image takes only the room that is written to.
            size = int(shutil.disk_usage(self._directory).free * 0.9) // disks.BLOCK * disks.BLOCK
            self._disks[name] = Disk(folder / "disk.img", folder / "disk", size)
            stack.callback(self._disks[name].remove)
        data = folder / ("disk/data" if self.own_disks else "data")
        data.mkdir(parents=True)
        ports = {name: self._ports.reserve() for name in self._broker.ports}
        return Place(data=data, logs=self._directory / "logs", ports=ports)

    @property
    def address(self) -> dict[str, Any]:
        return self._broker.address(self._places, self._settings)

    @property
    def device(self) -> str | None:
        """The block device that the first node writes to: after a cut of its power perhaps another."""
        return samples.device_of(next(iter(self._places.values())).data)

    def sync(self) -> None:
        """All that was written is on the disks, so that only what comes now is at stake."""
        for disk in self._disks.values():
            disk.sync()

    def look(self) -> None:
        """Raises BrokerFailed if a node has ended by itself."""
        for name in self.nodes.keys() - self._struck:
            self.nodes[name].look()

    def joined(self) -> bool:
        """Whether every node takes part."""
        return all(node.joined() for node in self.nodes.values() if isinstance(node, Joining))

    def choose(self, name: str, chance: random.Random) -> list[Node]:
        """The nodes that a fault's `node` means."""
        if name == "all":
            return list(self.nodes.values())
        if name == "random":
            return [chance.choice(list(self.nodes.values()))]
        if name not in self.nodes:
            raise BadInput(f"no node '{name}' to break: say one of {', '.join(self.nodes)}, all, or random")
        return [self.nodes[name]]

    def repair(self, nodes: Sequence[Node]) -> str | None:
        """Have the vendor's tool repair the nodes, and start them again; None if there is no tool."""
        said = []
        for node in nodes:
            node.stop()
            if not isinstance(node, Repairable):
                return None
            said.append(node.repair())
            node.start()
        return "; ".join(said)

    def strike(self, fault: Fault, nodes: Sequence[Node]) -> Mend:
        """Break nodes; returns what makes them whole, and starts them if they are down."""
        self._struck = {node.name for node in nodes}
        mends = [fault.strike(node, self._disks.get(node.name)) for node in nodes]

        def mend() -> None:
            for one in mends:
                one()
            for node in nodes if fault.ends_node else ():
                node.start()
            self._struck = set()

        return mend

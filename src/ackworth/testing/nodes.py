"""A broker of one node, started for a test or a measurement, and gone afterwards."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ackworth.broker import registry
from ackworth.broker.contract import SINGLE, Broker, Node, Place
from ackworth.broker.ports import Ports
from ackworth.broker.process import kill_all, wait_until
from ackworth.driver.contract import Address, ConnectionLost, load

READY_WITHIN = 120.0


@dataclass(frozen=True)
class Running:
    node: Node
    place: Place
    address: Address
    driver: str

    def wait_until_ready(self) -> None:
        """Raises BrokerFailed if it ends instead."""
        wait_until(self._answers, READY_WITHIN, f"{self.node.name} is ready")

    def _answers(self) -> bool:
        self.node.look()
        try:
            load(self.driver).prepare(self.address, [], [])
        except ConnectionLost:
            return False
        return True


@contextlib.contextmanager
def running(broker: Broker, folder: Path, **settings: str) -> Iterator[Running]:
    """The broker, ready, with its data and its logs below the folder."""
    folder = folder.resolve()  # a server has a working directory of its own
    with Ports() as ports, contextlib.ExitStack() as stack:
        place = Place(
            data=folder / "data", logs=folder / "logs", ports={name: ports.reserve() for name in broker.ports}
        )
        for path in (place.data, place.logs):
            path.mkdir(parents=True)
        settled = registry.settle(broker, settings)
        [name] = broker.nodes(SINGLE)
        [node] = broker.build({name: place}, settled)
        stack.callback(node.stop)
        stack.callback(kill_all, node.processes)  # nobody will read what it would save
        node.start()
        found = Running(node, place, broker.address({name: place}, settled), broker.driver)
        found.wait_until_ready()
        yield found


@contextlib.contextmanager
def fresh_addresses(broker: Broker, folder: Path, **settings: str) -> Iterator[Callable[[], Address]]:
    """For `check_driver`: each call starts a broker that knows nothing yet."""
    with contextlib.ExitStack() as stack:
        numbers = itertools.count()
        yield lambda: stack.enter_context(running(broker, folder / str(next(numbers)), **settings)).address

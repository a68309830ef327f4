"""Pause: the node stands still for a while (SIGSTOP), as a long collection or a frozen machine does."""

import signal

from ackworth.broker.contract import Node
from ackworth.broker.disk import Disk
from ackworth.broker.process import send, stop_all
from ackworth.fault.contract import Mend


class Pause:
    name = "pause"
    summary = "every process of the node stands still (SIGSTOP), then goes on"
    needs_disk = False
    ends_node = False

    def why_not(self) -> str | None:
        return None

    def strike(self, node: Node, disk: Disk | None) -> Mend:
        stopped = stop_all(node.processes)
        return lambda: send(stopped, signal.SIGCONT)


FAULT = Pause()

"""Pause: the node stands still for a while (SIGSTOP), as a long collection or a frozen machine does."""

import signal

from ackworth.broker.contract import Node
from ackworth.broker.disk import Disk
from ackworth.broker.process import send, stop_and_wait
from ackworth.fault.contract import Mend


class Pause:
    name = "pause"
    summary = "every process of the node stands still (SIGSTOP), then goes on"
    needs_disk = False
    ends_node = False

    def why_not(self) -> str | None:
        return None

    def strike(self, node: Node, disk: Disk | None) -> Mend:
        pids = node.processes()
        stop_and_wait(pids)
        return lambda: send(pids, signal.SIGCONT)


FAULT = Pause()

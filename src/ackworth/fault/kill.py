"""kill -9: the processes are gone at once; what they had written is still the kernel's to keep."""

from ackworth.broker.contract import Node
from ackworth.broker.disk import Disk
from ackworth.broker.process import kill_all
from ackworth.fault.contract import Mend, nothing_to_mend


class Kill:
    name = "kill"
    summary = "kill -9 of every process of the node"
    needs_disk = False
    ends_node = True

    def why_not(self) -> str | None:
        return None

    def strike(self, node: Node, disk: Disk | None) -> Mend:
        kill_all(node.processes)
        return nothing_to_mend


FAULT = Kill()

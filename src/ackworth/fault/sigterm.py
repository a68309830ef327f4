"""SIGTERM: the node is asked to end, as an operator or an init system would."""

from ackworth.broker.contract import Node
from ackworth.broker.disk import Disk
from ackworth.fault.contract import Mend, nothing_to_mend


class Sigterm:
    name = "sigterm"
    summary = "the node is stopped in an orderly way, under load"
    needs_disk = False
    ends_node = True

    def why_not(self) -> str | None:
        return None

    def strike(self, node: Node, disk: Disk | None) -> Mend:
        node.stop()
        return nothing_to_mend


FAULT = Sigterm()

"""Truncate: the broker's stored messages are deleted behind its back, as an operator short of space may do.

What was stored and not yet read is gone, and nobody claims otherwise. What is sent from then on must arrive.
"""

from ackworth.broker.contract import Node, Truncatable
from ackworth.broker.disk import Disk
from ackworth.fault.contract import Mend, nothing_to_mend
from ackworth.model.errors import Unavailable


class Truncate:
    name = "truncate"
    summary = "every stored message is deleted while the node runs"
    needs_disk = False
    ends_node = False

    def why_not(self) -> str | None:
        return None

    def strike(self, node: Node, disk: Disk | None) -> Mend:
        if not isinstance(node, Truncatable):
            raise Unavailable(f"node {node.name} has no table of messages to truncate: choose another broker")
        node.truncate()
        return nothing_to_mend


FAULT = Truncate()

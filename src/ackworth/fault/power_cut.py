"""The power cut: what was not synced to the disk is gone, and the processes with it.

1. The path must be a mount of its own: were the mount missing, the same path would be the machine's
   own filesystem, and the next step would take the machine down.
2. Every process of the node is stopped, and no thread runs any more. A node that runs on after its
   disk is gone meets I/O errors, and that is another fault.
3. The filesystem is shut down without flushing its log: EXT4_IOC_SHUTDOWN with NOLOGFLUSH.
4. The processes are killed, the filesystem is unmounted.
5. To mend: mount it again, which replays the journal.
"""

import fcntl
import os
import struct
from pathlib import Path

from ackworth.broker.contract import Node
from ackworth.broker.disk import Disk, why_not
from ackworth.broker.process import kill_all, kill_and_wait, stop_all
from ackworth.fault.contract import Mend
from ackworth.model.errors import Unavailable

_EXT4_IOC_SHUTDOWN = 0x8004587D
_NOLOGFLUSH = 2


class PowerCut:
    name = "power-cut"
    summary = "the disk and the processes stop at one moment; what was not synced is gone"
    needs_disk = True
    ends_node = True

    def why_not(self) -> str | None:
        return why_not()

    def strike(self, node: Node, disk: Disk | None) -> Mend:
        if disk is None:
            raise Unavailable(f"node {node.name} has no disk of its own, so its power cannot be cut")
        descriptor = open_own_mount(disk.mount_point)
        try:
            stopped = stop_all(node.processes)
            fcntl.ioctl(descriptor, _EXT4_IOC_SHUTDOWN, struct.pack("I", _NOLOGFLUSH))
            kill_and_wait(stopped)
            kill_all(node.processes)  # whoever opened its files meanwhile; nobody can any more
        finally:
            os.close(descriptor)
        disk.unmount()
        return disk.mount


def open_own_mount(path: Path) -> int:
    """A descriptor of a directory that is certainly a mount of its own. Raises Unavailable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    if os.fstat(descriptor).st_dev == path.resolve().parent.stat().st_dev:
        os.close(descriptor)
        raise Unavailable(f"{path} is no mount of its own: cutting its power would take down the whole machine")
    return descriptor


FAULT = PowerCut()

"""What a run costs: CPU, memory and disk of its processes and its host, read from /proc."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ackworth.model.clock import SECOND

_TICK = SECOND // os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SECTOR = 512
_NOTHING = {"cpu": 0, "rss": 0, "read": 0, "written": 0, "busy": 0, "backlog": -1}

Row = dict[str, Any]


def rows(pids: Mapping[str, int], device: str | None, backlog: int) -> list[Row]:
    """A row for each process that is alive, one for the host, and one for the disk."""
    now = time.monotonic_ns()
    found = [process(who, pid) for who, pid in pids.items()]
    found += [host(backlog), disk(device) if device else None]
    return [{**_NOTHING, **row, "t": now} for row in found if row is not None]


def process(who: str, pid: int) -> Row | None:
    folder = Path(f"/proc/{pid}")
    try:
        stat = (folder / "stat").read_text().rpartition(")")[2].split()
        io = dict(line.split(": ") for line in (folder / "io").read_text().splitlines())
    except OSError:
        return None  # it has ended
    return {
        "who": who,
        "cpu": (int(stat[11]) + int(stat[12])) * _TICK,
        "rss": int(stat[21]) * _PAGE,
        "read": int(io["read_bytes"]),
        "written": int(io["write_bytes"]),
    }


def host(backlog: int) -> Row:
    cpu = [int(n) for n in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    memory = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    kilobytes = {name: int(text.split()[0]) for name, text in memory.items()}
    idle = cpu[3] + cpu[4]
    used = kilobytes["MemTotal"] - kilobytes["MemAvailable"]
    return {"who": "host", "cpu": (sum(cpu[:8]) - idle) * _TICK, "rss": used * 1024, "backlog": backlog}


def disk(device: str) -> Row | None:
    for line in Path("/proc/diskstats").read_text().splitlines():
        fields = line.split()
        if fields[2] == device:
            read, written, busy = int(fields[5]), int(fields[9]), int(fields[12])
            return {
                "who": f"disk:{device}",
                "read": read * _SECTOR,
                "written": written * _SECTOR,
                "busy": busy * 1_000_000,
            }
    return None


def device_of(path: Path) -> str | None:
    """The block device below a path, as /proc/diskstats calls it; None where there is none, as on tmpfs."""
    try:
        number = path.stat().st_dev
    except OSError:
        return None  # its disk is not mounted
    link = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    return link.resolve().name if link.exists() else None

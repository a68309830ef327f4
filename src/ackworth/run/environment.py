"""What the machine is, for the record: a figure without its hardware says nothing."""

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import ackworth
from ackworth.model import files, java


def describe(path: Path) -> dict[str, Any]:
    filesystem, options = filesystem_of(path)
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": _system(),
        "kernel": platform.release(),
        "filesystem": filesystem,
        "mount_options": options,
        "python": platform.python_version(),
        "java": found.name if (found := java.look()) else None,
        "ackworth": ackworth.__version__,
        "libraries": {name: metadata.version(name) for name in ("brook-queue", "numpy", "pyarrow", "pyspark")},
    }


def filesystem_of(path: Path) -> tuple[str, str]:
    """Type and options of the filesystem that holds a path."""
    best = files.Mount("", "unknown", "")
    for mount in files.mounts():
        inside = f"{path.resolve()}/".startswith(f"{mount.point.rstrip('/')}/")
        if inside and len(mount.point) >= len(best.point):
            best = mount
    return best.kind, best.options


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()

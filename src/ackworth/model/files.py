"""Files that are whole or not there (written beside, synced, renamed), and where filesystems and caches are."""

import json
import os
import re
from pathlib import Path
from typing import NamedTuple


def write_whole(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.new")
    with beside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def cache() -> Path:
    """What is in it can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ackworth"


class Mount(NamedTuple):
    point: str
    kind: str
    options: str


def mounts() -> list[Mount]:
    """Those of this process. The kernel writes a space as \\040."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    plain = [re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), line.replace(" ", "\0")) for line in lines]
    return [Mount(*line.split("\0")[1:4]) for line in plain]


def write_json(path: Path, data: object) -> None:
    write_whole(path, json.dumps(data, indent=1) + "\n")

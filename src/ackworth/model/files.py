"""Files that are whole or not there: written beside, synced, renamed; and where those are that save work next time."""

import json
import os
from pathlib import Path


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


def write_json(path: Path, data: object) -> None:
    write_whole(path, json.dumps(data, indent=1) + "\n")

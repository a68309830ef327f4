"""Files that are whole or not there: written beside, synced, renamed."""

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


def write_json(path: Path, data: object) -> None:
    write_whole(path, json.dumps(data, indent=1) + "\n")

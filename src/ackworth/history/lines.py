"""The small tables, `mark` and `sample`: a line of JSON an event until the scribe makes a segment of them.

A line is in the kernel's hands as soon as it is written, so it survives the death of the writer; a
last line that was cut off is no line.
"""

import json
from pathlib import Path
from typing import Any

from ackworth.history.schema import Table


class Lines:
    def __init__(self, spool: Path, table: Table) -> None:
        spool.mkdir(parents=True, exist_ok=True)
        self._table = table
        self._file = path_of(spool, table).open("a", buffering=1, encoding="utf-8")

    def append(self, **row: Any) -> None:
        self._file.write(json.dumps({name: row[name] for name in self._table.names}) + "\n")

    def close(self) -> None:
        self._file.close()


def path_of(spool: Path, table: Table) -> Path:
    return spool / f"{table.name}.jsonl"


def read_lines(spool: Path, table: Table) -> list[dict[str, Any]]:
    path = path_of(spool, table)
    if not path.exists():
        return []
    whole, _, _ = path.read_text(encoding="utf-8").rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]

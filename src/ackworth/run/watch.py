"""How far a trial is, read from the headers of its spool: no worker has to report."""

import mmap
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ackworth.history.schema import DELIVERED, OUTCOME, SENT, Table
from ackworth.history.spool import HEADER, chunks, rows_in
from ackworth.model.errors import AckworthError

WATCHED = (SENT, OUTCOME, DELIVERED)


class Watch:
    """Counts rows per table and series. A chunk stays mapped until it is final, so its deletion does not matter."""

    def __init__(self, spool: Path) -> None:
        self._spool = spool
        self._finished: dict[tuple[str, str], int] = {}  # rows of the chunks that are final
        self._current: dict[
            tuple[str, str], tuple[int, npt.NDArray[np.int64]]
        ] = {}  # number and header of the newest chunk

    def look(self) -> None:
        """Notice new chunks. Must happen more often than the scribe takes them away. Raises AckworthError if not."""
        for table in WATCHED:
            for series, number, path in chunks(self._spool, table):
                self._notice(table, series, number, path)

    def _notice(self, table: Table, series: str, number: int, path: Path) -> None:
        key = (table.name, series)
        known, header = self._current.get(key, (-1, None))
        if number <= known:
            return
        if number > known + 1:
            raise AckworthError(f"{path}: those before it were gone before they were counted: the trial cannot go on")
        if header is not None:
            self._finished[key] = self._finished.get(key, 0) + rows_in(header)
        try:
            with path.open("rb") as file:
                mapped = mmap.mmap(file.fileno(), HEADER, prot=mmap.PROT_READ)
        except FileNotFoundError:  # it became a segment between the listing and here
            raise AckworthError(f"{path}: gone before its rows were counted: the trial cannot go on") from None
        self._current[key] = (number, np.frombuffer(mapped, np.int64))

    def rows(self, table: Table, series: str | None = None) -> int:
        keys = [key for key in self._current if key[0] == table.name and series in (None, key[1])]
        return sum(self._finished.get(key, 0) + rows_in(self._current[key][1]) for key in keys)

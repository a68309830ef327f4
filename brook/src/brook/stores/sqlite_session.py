"""Statements in a transaction of SQLite, which excludes all others from its beginning: there is nothing to lock.

A transaction that appends tells the next of its process where the topics end. That is forgotten if a transaction fails
or does anything else, and not believed if another connection has committed meanwhile.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from brook.packing import Run
from brook.sql import sqlite as sql
from brook.sql.statements import DROP_CLAIMS, DROP_RECEIPT, next_offsets
from brook.stores import writing
from brook.stores.session import Parameters, Row, Select


class Ends(NamedTuple):
    """Where topics end that may be written to."""

    version: int | None  # of the database, which changes when another connection commits
    nexts: dict[int, int]


class SqliteSession:
    locking = ""
    by_key = ""

    def __init__(self, db: sqlite3.Connection | sqlite3.Cursor, told: Ends | None = None) -> None:
        """told: by the last transaction."""
        self._db = db
        self._told = told
        self.to_tell: Ends | None = None

    def append(self, runs: Sequence[Run], now: float) -> list[int]:
        """See base.Writer."""
        ((version,),) = self.rows(sql.DATA_VERSION)
        nexts = self._told.nexts if self._told and self._told.version == version else {}
        if unknown := {run.topic for run in runs} - nexts.keys():
            nexts |= writing.require_writable(self, self.rows(next_offsets(unknown)), unknown)
        firsts = writing.store(self, nexts, runs, now)
        self.to_tell = Ends(version, nexts)
        return firsts

    def rows(self, statement: str, parameters: Parameters = ()) -> list[Row]:
        return self._db.execute(statement, parameters).fetchall()

    def rows_of_each(self, statement: str, many: Iterable[Parameters]) -> list[Row]:
        return [row for parameters in many for row in self._db.execute(statement, parameters)]

    def gather(self, *statements: Select) -> list[list[Row]]:
        return [self.rows(statement, parameters) for statement, parameters in statements]

    def count(self, statement: str, parameters: Parameters = ()) -> int:
        return self._db.execute(statement, parameters).rowcount

    def insert(self, statement: str, *many: Parameters) -> list[int]:
        return [self._db.execute(statement, parameters).lastrowid or 0 for parameters in many]

    def change(self, statement: str, *many: Parameters) -> None:
        self._db.executemany(statement, many)

    def body_ids(self, places: Sequence[int]) -> Sequence[int]:
        ((last,),) = self.rows(sql.LAST_BODY)
        self.change(sql.MOVE_LAST_BODY, (last + len(places),))
        return range(last + 1, last + 1 + len(places))

    def dropping(self, receipts: Sequence[int]) -> list[Select]:
        return [(statement, (receipt,)) for receipt in receipts for statement in (DROP_CLAIMS, DROP_RECEIPT)]

    def lock_catalogue(self) -> None:
        pass

    def lock_groups(self, names: Sequence[str]) -> None:
        pass

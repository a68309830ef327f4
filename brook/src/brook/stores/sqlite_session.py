"""Statements in a transaction of SQLite, which excludes all others from its beginning: there is nothing to lock."""

import sqlite3
from collections.abc import Iterable, Sequence

from brook.sql import sqlite as sql
from brook.stores.session import Parameters, Row, Select


class SqliteSession:
    locking = ""

    def __init__(self, db: sqlite3.Connection | sqlite3.Cursor) -> None:
        self._db = db

    def rows(self, statement: str, parameters: Parameters = ()) -> list[Row]:
        return self._db.execute(statement, parameters).fetchall()

    def rows_of_each(self, statement: str, many: Iterable[Parameters]) -> list[Row]:
        return [row for parameters in many for row in self._db.execute(statement, parameters)]

    def gather(self, *selects: Select) -> list[list[Row]]:
        return [self.rows(statement, parameters) for statement, parameters in selects]

    def count(self, statement: str, parameters: Parameters = ()) -> int:
        return self._db.execute(statement, parameters).rowcount

    def insert(self, statement: str, parameters: Parameters = ()) -> int:
        return self._db.execute(statement, parameters).lastrowid or 0

    def change(self, statement: str, *many: Parameters) -> None:
        self._db.executemany(statement, many)

    def body_ids(self, places: Sequence[int]) -> Sequence[int]:
        ((last,),) = self.rows(sql.LAST_BODY)
        self.change(sql.MOVE_LAST_BODY, (last + len(places),))
        return range(last + 1, last + 1 + len(places))

    def lock_catalogue(self) -> None:
        pass

    def lock_groups(self, ids: Sequence[int]) -> None:
        pass

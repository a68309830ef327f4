"""Keys and tags in SQLite: which runs hold them. Every function runs in a transaction.

Rows of runs that are gone may stay for a while, until their block has no runs; nobody finds them.
"""

import sqlite3
from collections.abc import Iterable

from brook.packing import Piece, Run, labels
from brook.sql import sqlite as sql
from brook.stores.sqlite_places import Executor, to_piece, topic_bounds


def add(db: Executor, placed: Iterable[tuple[int, Run]]) -> None:
    rows = [(place >> sql.BLOCK_BITS, label, place) for place, run in placed if run.extras for label in labels(run)]
    db.executemany(sql.ADD_LABEL, sorted(rows))  # in their order, so that a page is looked for once


def find(db: sqlite3.Connection, label: str, first: int, end: int, runs: int) -> list[Piece]:
    """The first so many runs that hold the label, between two places."""
    (begin,) = db.execute(sql.RUN_AT, (first,)).fetchone()
    wanted = {"label": label, "first": first, "end": end}
    pieces: list[Piece] = []
    for block in range(begin >> sql.BLOCK_BITS, (end - 1 >> sql.BLOCK_BITS) + 1):
        found = db.execute(sql.LABELLED_RUNS, {**wanted, "block": block, "runs": runs - len(pieces)}).fetchall()
        pieces += map(to_piece, found)
        if len(pieces) == runs:
            break
    return pieces


def drop(db: sqlite3.Connection, topic: int, last: int) -> None:
    """Of the topic's blocks up to that of a place, as far as they have no runs any more."""
    first, _ = topic_bounds(topic)
    db.execute(sql.DROP_LABELS, (first >> sql.BLOCK_BITS, last >> sql.BLOCK_BITS))

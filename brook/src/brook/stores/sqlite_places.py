"""Places, which say topic and offset in one number, and the rows that carry them."""

import json
import math
import sqlite3
from collections.abc import Collection
from datetime import datetime
from typing import Any

from brook.errors import Forbidden
from brook.model import Position
from brook.packing import Piece, cut
from brook.sql import sqlite as sql

Executor = sqlite3.Connection | sqlite3.Cursor

_OFFSET_MASK = (1 << sql.OFFSET_BITS) - 1


def to_place(topic: int, offset: int) -> int:
    return topic << sql.OFFSET_BITS | offset


def topic_and_offset(place: int) -> tuple[int, int]:
    return place >> sql.OFFSET_BITS, place & _OFFSET_MASK


def to_piece(row: tuple[Any, ...]) -> Piece:
    """From a row of CLAIMED_RUNS: the part of the run that is claimed."""
    claim, claimed, attempts, place, count, sent, data, sizes, extras = row
    topic, first = topic_and_offset(place)
    begin = claim & _OFFSET_MASK
    stored = Piece(topic, first, count, attempts, sent, data, sizes, extras and json.loads(extras))
    return cut(stored, begin, begin + claimed)


def topic_bounds(topic: int) -> tuple[int, int]:
    """The places of a topic: from the first to before the second."""
    return to_place(topic, 0), to_place(topic + 1, 0)


def offset_at(db: sqlite3.Connection, topic: int, position: Position) -> int:
    (end,) = db.execute(sql.TOPIC_END, (topic,)).fetchone()
    if position == "latest":
        return int(end)
    if isinstance(position, int):
        return int(min(position, end))
    if isinstance(position, datetime):
        since = math.ceil(position.timestamp() * 1000)
        row = db.execute(sql.FIRST_PLACE_SINCE, (*topic_bounds(topic), since)).fetchone()
    else:
        row = db.execute(sql.FIRST_PLACE, topic_bounds(topic)).fetchone()
    return int(end) if row is None or row[0] is None else row[0] & _OFFSET_MASK


def unreadable(db: sqlite3.Connection) -> set[int]:
    """The topics that nobody may read."""
    return {topic for (topic,) in db.execute(sql.UNREADABLE).fetchall()}


def require_readable(db: sqlite3.Connection, topics: Collection[int]) -> None:
    if forbidden := unreadable(db).intersection(topics):
        raise Forbidden(f"topic {min(forbidden)}: its rule lets nobody read it: change its rule, or leave it out")

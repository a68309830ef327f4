"""Places, which say topic and offset in one number, and the rows that carry them."""

import json
from typing import Any

from brook.packing import Piece, cut
from brook.sql import sqlite as sql

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

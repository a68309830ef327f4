"""Places, which say topic and offset in one number, and the rows that carry them."""

import json
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime

from brook.claiming import Range
from brook.errors import Forbidden
from brook.model import Position
from brook.packing import Piece, cut
from brook.sql import statements as sql
from brook.stores.session import Row, Session, row

_ALL = 1 << 62


def to_place(topic: int, offset: int) -> int:
    return topic << sql.OFFSET_BITS | offset


def topic_and_offset(place: int) -> tuple[int, int]:
    return place >> sql.OFFSET_BITS, place & sql.MAX_OFFSET


def topic_bounds(topic: int) -> tuple[int, int]:
    """The places of a topic: from the first to before the second."""
    return to_place(topic, 0), to_place(topic + 1, 0)


def read_ranges(db: Session, ranges: Iterable[Range], runs: int = _ALL) -> list[Piece]:
    """What is stored of the ranges: of each the first so many runs."""
    wanted = [
        {"place": to_place(topic, first), "count": count, "attempts": attempts, "runs": runs}
        for topic, first, count, attempts in ranges
    ]
    return [to_piece(found) for found in db.rows_of_each(sql.RUNS_FROM, wanted)]


def read_together(db: Session, many: Sequence[Sequence[Range]]) -> list[list[Piece]]:
    """What is stored of each of these; of ranges that follow each other a run is read once."""
    ranges = sorted(each for some in many for each in some)
    pieces = read_ranges(db, _joined(ranges))
    if len(many) == 1:
        return [pieces]
    return [[part for each in some for part in _within(pieces, each)] for some in many]


def _joined(ranges: Iterable[Range]) -> list[Range]:
    """Those that follow each other as one."""
    joined: list[Range] = []
    for each in ranges:
        last = joined[-1] if joined else None
        if last and (last.topic, last.end, last.attempts) == (each.topic, each.first, each.attempts):
            joined[-1] = last._replace(messages=last.messages + each.messages)
        else:
            joined.append(each)
    return joined


def _within(pieces: Iterable[Piece], wanted: Range) -> Iterator[Piece]:
    for piece in pieces:
        if piece.topic == wanted.topic and piece.first < wanted.end and piece.first + piece.messages > wanted.first:
            yield cut(piece, wanted.first, wanted.end)


def to_piece(found: Row) -> Piece:
    """The part of the run that is wanted."""
    wanted, messages, attempts, place, count, sent, data, sizes, extras = found
    topic, first = topic_and_offset(place)
    begin = wanted & sql.MAX_OFFSET
    stored = Piece(topic, first, count, attempts, sent, data, sizes, extras and json.loads(extras))
    return cut(stored, begin, begin + messages)


def offset_at(db: Session, topic: int, position: Position) -> int:
    ((end,),) = db.rows(sql.TOPIC_END, (topic,))
    if position == "latest":
        return int(end)
    if isinstance(position, int):
        return int(min(position, end))
    if isinstance(position, datetime):
        since = math.ceil(position.timestamp() * 1000)
        found = row(db, sql.FIRST_PLACE_SINCE, (*topic_bounds(topic), since))
    else:
        found = row(db, sql.FIRST_PLACE, topic_bounds(topic))
    return int(end) if found is None or found[0] is None else found[0] & sql.MAX_OFFSET


def require_readable(db: Session, topic: int) -> None:
    require_one_outside(db, {each for (each,) in db.rows(sql.UNREADABLE)}, [topic])


def require_one_outside(db: Session, unreadable: set[int], topics: Collection[int]) -> None:
    """Forbidden, if all of the topics are such that nobody may read."""
    if topics and unreadable.issuperset(topics):
        name = topic_name(db, min(topics))
        raise Forbidden(f"topic {name!r}: its rule lets nobody read it: change its rule, or leave it out")


def topic_name(db: Session, topic: int) -> str:
    """For those whom an error is told."""
    return str(next(name for name, each in db.rows(sql.ALL_TOPICS) if each == topic))

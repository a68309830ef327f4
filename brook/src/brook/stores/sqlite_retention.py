"""Retention in SQLite. Every function runs in a transaction."""

import sqlite3

from brook.sql import sqlite as sql
from brook.stores import sqlite_labels as labels
from brook.stores.base import Cleaned
from brook.stores.sqlite_places import to_place, topic_and_offset, topic_bounds


def clean(db: sqlite3.Connection, topic: int, first: int, before: float, excess: int, runs: int) -> Cleaned:
    _, end = topic_bounds(topic)
    rows = db.execute(sql.OLDEST_RUNS, (to_place(topic, first), end, runs)).fetchall()
    if not rows:
        return Cleaned(0, 0, None)
    in_flight = _in_flight(db, rows[0][0], rows[-1][0] + rows[-1][1])
    messages, freed, passed = 0, 0, rows[0][0]
    for place, count, sent, body, size in rows:
        if sent >= before * 1000 and freed >= excess:
            break
        passed = place + count
        if not any(begin < place + count and stop > place for begin, stop in in_flight):
            db.execute(sql.DROP_RUN, (place,))
            db.execute(sql.DROP_BODY, (body,))
            db.execute(sql.DROP_DELIVERIES, (place, place + count))
            messages, freed = messages + count, freed + size
    labels.drop(db, topic, passed)
    _, following = topic_and_offset(passed)
    db.execute(sql.PASS_OVER, (topic, following))
    return Cleaned(messages, freed, following if passed == rows[-1][0] + rows[-1][1] else None)


def _in_flight(db: sqlite3.Connection, first: int, end: int) -> list[tuple[int, int]]:
    rows = db.execute(sql.IN_FLIGHT, {"first": first, "end": end}).fetchall()
    return [(place, place + count) for place, count in rows]


def skip_deleted(db: sqlite3.Connection, group_id: int) -> None:
    for topic, offset, messages in db.execute(sql.READY, (group_id,)).fetchall():
        first, end = to_place(topic, offset), to_place(topic, offset + messages)
        row = db.execute(sql.NEXT_WHOLE_RUN, {"first": first, "end": end}).fetchone()
        _, following = topic_and_offset(max(first, row[0]) if row else end)
        if following > offset:
            db.execute(sql.MOVE_PROGRESS, (group_id, topic, following))

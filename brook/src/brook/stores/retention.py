"""Retention. Every function runs in a transaction."""

from collections.abc import Sequence

from brook.sql import statements as sql
from brook.stores import labels
from brook.stores.base import Cleaned
from brook.stores.offers import Group
from brook.stores.places import to_place, topic_and_offset, topic_bounds
from brook.stores.session import Session, row


def clean(db: Session, topic: int, first: int, before: float, excess: int, runs: int) -> Cleaned:
    # What a group claims meanwhile, we would not see; nor one that is new.
    db.lock_catalogue()
    db.lock_groups([name for (name,) in db.rows(sql.ALL_GROUPS)])
    _, end = topic_bounds(topic)
    rows = db.rows(sql.OLDEST_RUNS, (to_place(topic, first), end, runs))
    if not rows:
        return Cleaned(0, 0, None)
    in_flight = _in_flight(db, rows[0][0], rows[-1][0] + rows[-1][1])
    messages, size, passed, stay = 0, 0, rows[0][0], list[tuple[int, int]]()
    for place, count, sent, body, of_run in rows:
        if sent >= before * 1000 and size >= excess:
            break
        passed, size = place + count, size + of_run
        if any(begin < passed and stop > place for begin, stop in in_flight):
            stay.append((place, passed))
            continue
        db.change(sql.DROP_RUN, (place,))
        db.change(sql.DROP_BODY, (body,))
        messages += count
    gaps = _gaps(to_place(topic, first), stay, passed)
    db.change(sql.DROP_DELIVERIES, *gaps)
    db.change(sql.CUT_DELIVERIES, *gaps)
    db.change(sql.PASS_OVER, *gaps)
    labels.drop(db, topic, passed)
    _, following = topic_and_offset(passed)
    return Cleaned(messages, size, following if passed == rows[-1][0] + rows[-1][1] else None)


def _gaps(first: int, stay: Sequence[tuple[int, int]], end: int) -> list[dict[str, int]]:
    """What is not there any more from one place to another: what lies between the runs that stay."""
    begins, ends = [first, *(end for _, end in stay)], [*(begin for begin, _ in stay), end]
    return [_gap(begin, end) for begin, end in zip(begins, ends, strict=True) if begin < end]


def _gap(begin: int, end: int) -> dict[str, int]:
    (topic, offset), (_, following) = topic_and_offset(begin), topic_and_offset(end)
    return {"first": begin, "end": end, "topic": topic, "offset": offset, "next": following}


def _in_flight(db: Session, first: int, end: int) -> list[tuple[int, int]]:
    rows = db.rows(sql.IN_FLIGHT, {"first": first, "end": end})
    return [(place, place + count) for place, count in rows]


def skip_deleted(db: Session, group: Group) -> None:
    """Of a group whose lock we have."""
    for topic, offset, messages in db.rows(sql.READY, (group.name,)):
        first, end = to_place(topic, offset), to_place(topic, offset + messages)
        found = row(db, sql.NEXT_WHOLE_RUN, {"first": first, "end": end})
        _, following = topic_and_offset(max(first, found[0]) if found else end)
        if following > offset:
            db.change(sql.MOVE_PROGRESS, (following, group.id, topic))

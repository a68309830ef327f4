"""Appending in MariaDB and MySQL.

1. One small run is stored in one round trip: the server takes its places, if the topic may be written to and nothing
   waits in the inbox, and stores it there. Otherwise nothing is changed, and it is stored with care.
2. With care: the topics' rows are locked and looked at, what waits for them in the inbox gets its places, and then all
   else is stored.
3. Places that Redis has proposed are taken only if they are the next.
"""

from collections.abc import Mapping, Sequence

from brook.packing import Run
from brook.sql import mysql as sql
from brook.stores import writing
from brook.stores.mysql_database import MysqlDatabase
from brook.stores.mysql_inbox import place_all
from brook.stores.places import to_place
from brook.stores.redis_places import Disagreed
from brook.stores.session import Session


def append_small(database: MysqlDatabase, run: Run, now: float, proposed: int | None) -> int | None:
    """The first offset of a small run without keys and tags; None: it has to be done with care."""
    taken = {"topic": run.topic, "first": proposed, "count": run.messages}
    stored = {
        "begin": to_place(run.topic, 0),
        "count": run.messages,
        "sent": int(now * 1000),
        "bytes": len(run.data),
        "sender": run.sender,
        "data": run.data,
        "sizes": run.sizes,
    }

    def work(db: Session) -> None:
        db.change(sql.TAKE_PLACES, taken)
        db.change(sql.ADD_SMALL_RUN, stored)

    _, (_, taking, storing, _) = database.write_and_tell(work)
    return taking.id if storing.rows else None


def append_at(
    db: Session, proposed: dict[int, int], counts: Mapping[int, int], runs: Sequence[Run], now: float
) -> list[int]:
    """At the offsets that were proposed for so many messages of each topic. Disagreed, unless they come next."""
    for topic, first in sorted(proposed.items()):
        if not db.count(sql.TAKE_PLACES, {"topic": topic, "first": first, "count": counts[topic]}):
            raise Disagreed(f"topic {topic}: {first} is not its next offset, or the inbox comes first")
    return writing.store(db, proposed, runs, now)


def append(db: Session, runs: Sequence[Run], now: float) -> list[int]:
    """What was committed before is before."""
    topics = {run.topic for run in runs}
    rows = db.rows(sql.lock_offsets(topics))
    nexts = writing.require_writable(db, [(topic, following, rule) for topic, following, rule, _ in rows], topics)
    if any(is_waiting for *_, is_waiting in rows):
        place_all(db, nexts)
    firsts = writing.store(db, nexts, runs, now)
    writing.move_offsets(db, nexts)
    return firsts

"""Appending, and what can be appended to. Every function runs in a transaction."""

import json
from collections.abc import Collection, Mapping, Sequence

from brook.errors import Forbidden, UnknownTopic
from brook.model import Position
from brook.packing import Run
from brook.sql import statements as sql
from brook.stores import labels
from brook.stores.offers import group_or_none
from brook.stores.places import offset_at, to_place, topic_name
from brook.stores.session import Session

# So many bytes of bodies go with their run into one page.
SMALL_RUN = 3072


def topics(db: Session) -> dict[str, int]:
    return dict(db.rows(sql.ALL_TOPICS))


def create_topics(db: Session, names: Collection[str]) -> None:
    db.lock_catalogue()
    known = topics(db)
    db.change(sql.ADD_TOPIC, *[(name,) for name in dict.fromkeys(names) if name not in known])
    db.change(sql.FOLLOW_NEW_TOPICS, ())


def subscribe(
    db: Session,
    group: str,
    wanted: Collection[int] | None,
    start: Position,
    ordered: bool | None,
    tags: Collection[str] | None,
) -> None:
    db.lock_catalogue()
    known = set(topics(db).values())
    _require_none_missing(set(wanted or ()) - known)
    group_id = _add_group(db, group, wanted is None, ordered, tags)
    new = (known if wanted is None else set(wanted)) - {topic for (topic,) in db.rows(sql.FOLLOWED, (group_id,))}
    db.change(sql.FOLLOW, *[(group_id, topic, offset_at(db, topic, start)) for topic in new])


def _add_group(db: Session, name: str, all_topics: bool, ordered: bool | None, tags: Collection[str] | None) -> int:
    """A group that follows everything goes on doing so; None leaves an option as it is."""
    old = group_or_none(db, name)
    if old is None:
        (new,) = db.insert(sql.ADD_GROUP, (name, all_topics, bool(ordered), json.dumps(list(tags or ()))))
        return new
    is_ordered = old.ordered if ordered is None else ordered
    text = json.dumps(list(old.tags if tags is None else tags))
    db.change(sql.CHANGE_GROUP, (old.follows_all or all_topics, is_ordered, text, old.id))
    return old.id


def is_small(runs: Sequence[Run]) -> bool:
    """Whether it is one run that has its bodies with it."""
    return len(runs) == 1 and len(runs[0].data) <= SMALL_RUN


def store(db: Session, nexts: dict[int, int], runs: Sequence[Run], now: float) -> list[int]:
    """nexts: the next offset of each topic, for us to hand out; the first offset of each run."""
    if is_small(runs):
        return [_store_small(db, nexts, runs[0], int(now * 1000))]
    firsts = hand_out(nexts, [(run.topic, run.messages) for run in runs])
    placed = [(to_place(run.topic, first), run) for first, run in zip(firsts, runs, strict=True)]
    ids = db.body_ids([place for place, _ in placed])
    db.change(sql.ADD_BODY, *[(i, r.data, r.sizes, r.extras) for i, r in zip(ids, runs, strict=True)])
    rows = [_described(place, run, int(now * 1000), body) for body, (place, run) in zip(ids, placed, strict=True)]
    db.change(sql.ADD_RUN, *[(*row, None, None, None) for row in rows])
    labels.add(db, [(place, run.extras) for place, run in placed if run.extras])
    return firsts


def _store_small(db: Session, nexts: dict[int, int], run: Run, sent: int) -> int:
    first = nexts[run.topic]
    nexts[run.topic] += run.messages
    place = to_place(run.topic, first)
    db.change(sql.ADD_RUN, (*_described(place, run, sent, 0), run.data, run.sizes, run.extras))
    if run.extras:
        labels.add(db, [(place, run.extras)])
    return first


def _described(place: int, run: Run, sent: int, body: int) -> tuple[object, ...]:
    return place, run.messages, sent, body, len(run.data), run.sender


def require_writable(db: Session, rows: Sequence[tuple[int, int, str]], wanted: Collection[int]) -> dict[int, int]:
    """From what next_offsets finds: the next offset of each topic. Raises UnknownTopic, Forbidden."""
    _require_none_missing(set(wanted) - {topic for topic, _, _ in rows})
    for topic, _, rule in rows:
        if rule in ("read-only", "closed"):
            name = topic_name(db, topic)
            raise Forbidden(f"topic {name!r} is {rule}: nothing can be sent to it: change its rule, or send elsewhere")
    return {topic: following for topic, following, _ in rows}


def hand_out(nexts: dict[int, int], runs: Sequence[tuple[int, int]]) -> list[int]:
    """The first offset of each run, which is a topic and a number of messages; moves the next offsets."""
    firsts = []
    for topic, messages in runs:
        firsts.append(nexts[topic])
        nexts[topic] += messages
    return firsts


def move_offsets(db: Session, nexts: Mapping[int, int]) -> None:
    db.change(sql.MOVE_NEXT_OFFSET, *[(following, topic) for topic, following in nexts.items()])


def _require_none_missing(missing: Collection[int]) -> None:
    if missing:
        raise UnknownTopic(f"{min(missing)}: no topic has this id: use those that create_topics() returned")

"""Watching in SQLite: what the tables say of topics, clients and messages."""

import json
import sqlite3
from typing import Any

from brook.identity import is_dead
from brook.sql import sqlite as sql
from brook.states import ClientState, Delivery, TopicState, Trace
from brook.stores.sqlite_places import to_place


def topic_states(db: sqlite3.Connection, since: float) -> list[TopicState]:
    rows = db.execute(sql.TOPIC_STATES, (since * 1000,)).fetchall()
    return [
        TopicState(name, rule, following, stored, size, _seconds(oldest), _seconds(newest), recent)
        for name, rule, following, stored, size, oldest, newest, recent in rows
    ]


def client_states(db: sqlite3.Connection) -> list[ClientState]:
    rows = db.execute(sql.CLIENT_STATES).fetchall()
    return [
        ClientState(client, group, threads, seen, claimed, since, is_dead(client))
        for client, group, threads, seen, claimed, since in rows
    ]


def trace(db: sqlite3.Connection, topic: int, offset: int) -> Trace:
    where = {"first": to_place(topic, 0), "place": to_place(topic, offset), "topic": topic, "offset": offset}
    deliveries = tuple(Delivery(*row) for row in db.execute(sql.DELIVERIES, where).fetchall())
    standing = dict(db.execute(sql.STANDINGS, where).fetchall())
    row = db.execute(sql.SENDER, where).fetchone()
    if row is None:
        return Trace(None, None, None, deliveries, standing)
    place, sent, sender = row
    process, thread = _sender(sender, where["place"] - place)
    return Trace(sent / 1000, process, thread, deliveries, standing)


def _sender(text: str | None, index: int) -> tuple[str | None, str | None]:
    """Of the message at this index of its run."""
    if text is None:
        return None, None
    process, *threads = json.loads(text)
    return process, threads[index] if len(threads) > 1 else threads[0]


def _seconds(milliseconds: Any) -> float | None:
    return None if milliseconds is None else milliseconds / 1000

"""Watching: what the tables say of topics, clients and messages."""

import json
from collections.abc import Collection
from typing import Any

from brook.alerts import Alert
from brook.identity import is_dead
from brook.sql import statements as sql
from brook.states import ClientState, Delivery, ListenerState, TopicState, Trace
from brook.stores.base import KEPT_ALERTS, ListenerPlace
from brook.stores.offers import lock_group
from brook.stores.places import to_place
from brook.stores.session import Session, row


def topic_states(db: Session, since: float) -> list[TopicState]:
    rows = db.rows(sql.TOPIC_STATES, (since * 1000,))
    return [
        TopicState(name, rule, following, stored, size, _seconds(oldest), _seconds(newest), recent)
        for name, rule, following, stored, size, oldest, newest, recent in rows
    ]


def client_states(db: Session) -> list[ClientState]:
    rows = db.rows(sql.CLIENT_STATES)
    return [
        ClientState(client, group, threads, seen, claimed, since, is_dead(client))
        for client, group, threads, seen, claimed, since in rows
    ]


def listener_states(db: Session) -> list[ListenerState]:
    rows = db.rows(sql.LISTENER_STATES)
    return [
        ListenerState(client, listener, topic, next_offset, end, seen, is_dead(client))
        for client, listener, topic, next_offset, end, seen in rows
    ]


def tell_listeners(db: Session, client: str, places: Collection[ListenerPlace], now: float) -> None:
    db.change(sql.DROP_LISTENERS, (client,))
    db.change(sql.ADD_LISTENER, *[(client, *place, now) for place in places])


def add_alert(db: Session, alert: Alert) -> None:
    these = lock_group(db, alert.group).id, alert.kind
    ((last,),) = db.rows(sql.LAST_ALERT, these)
    db.change(sql.ADD_ALERT, (*these, last + 1, alert.client, alert.thread, alert.text, alert.at))
    db.change(sql.DROP_ALERTS, (*these, last + 1 - KEPT_ALERTS))


def trace(db: Session, topic: int, offset: int) -> Trace:
    where = {"first": to_place(topic, 0), "place": to_place(topic, offset), "topic": topic, "offset": offset}
    deliveries = tuple(Delivery(*found) for found in db.rows(sql.DELIVERIES, where))
    standing: dict[str, str] = dict(db.rows(sql.STANDINGS, where))
    run = row(db, sql.SENDER, where)
    if run is None:
        return Trace(None, None, None, deliveries, standing)
    place, sent, sender = run
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

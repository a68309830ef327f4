"""Rows for people and for programs: a table, or JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from brook.alerts import Alert
from brook.model import DeadLetter, Message
from brook.states import ClientState, Delivery, GroupState, ListenerState, TopicState

Row = Mapping[str, Any]

LONGEST = 200  # characters of a value in a table
TIMES = {"at", "sent_at", "oldest", "newest", "seen", "since", "claimed_at", "ended", "died"}


def topic_row(state: TopicState, seconds: float) -> Row:
    return {**asdict(state), "per_second": round(state.recent / seconds, 3)}


def group_row(state: GroupState) -> Row:
    return {**asdict(state), "lag": state.lag}


def lag_row(group: str | None, client: str | None, lag: int) -> Row:
    return {"group": group, "client": client, "lag": lag}


def client_row(state: ClientState) -> Row:
    return asdict(state)


def listener_row(state: ListenerState) -> Row:
    return {**asdict(state), "lag": state.lag}


def alert_row(alert: Alert) -> Row:
    row = asdict(alert)
    return {"at": row.pop("at"), **row}


def dead_row(letter: DeadLetter) -> Row:
    return asdict(letter)


def delivery_row(delivery: Delivery) -> Row:
    row = asdict(delivery)
    return {"claimed_at": row.pop("claimed"), **row}


def message_row(message: Message) -> Row:
    """Bodies that are no text are shown as they would be written in Python."""
    try:
        body = message.body.decode()
    except UnicodeDecodeError:
        body = repr(message.body)
    return {
        "topic": message.topic,
        "offset": message.offset,
        "sent_at": message.sent,
        "key": message.key,
        "tags": list(message.tags),
        "properties": dict(message.properties),
        "body": body,
    }


def as_json(rows: Sequence[Row] | Row) -> str:
    return json.dumps(rows, indent=2, ensure_ascii=False)


def as_table(rows: Sequence[Row]) -> str:
    """Columns that are as wide as they need to be."""
    if not rows:
        return "nothing"
    lines = [list(rows[0]), *([shown(name, value) for name, value in row.items()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    return "\n".join(line.rstrip() for line in padded)


def shown(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name in TIMES:
        return datetime.fromtimestamp(value).astimezone().isoformat(" ", "seconds")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    if isinstance(value, dict):
        return ",".join(f"{key}={each}" for key, each in value.items())
    text = str(value)
    # A newline would tear the table, and an escape could do anything to a terminal.
    plain = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text[:LONGEST])
    return plain if len(text) <= LONGEST else f"{plain}… ({len(text):,} characters)"

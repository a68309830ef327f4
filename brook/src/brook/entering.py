"""What people type, at a command line or into a form: its meaning, or BadSetting."""

import json
from datetime import datetime
from typing import Any

from brook.errors import BadSetting
from brook.model import Position


def position(text: str) -> Position:
    if text == "earliest":
        return "earliest"
    if text == "latest":
        return "latest"
    try:
        return int(text) if text.isdecimal() else time(text)
    except (BadSetting, ValueError):
        raise BadSetting(f"{text!r}: give earliest, latest, an offset, or a time as 2026-01-31T12:00") from None


def time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise BadSetting(f"{text!r}: give a time as 2026-01-31T12:00") from None


def json_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise BadSetting(f"{text!r}: not JSON: quote texts, as in '\"text\"'") from None

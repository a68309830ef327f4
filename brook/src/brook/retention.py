"""Deleting what is too old or too much, a little at a time, so that nobody waits long for the database."""

import math

from brook.settings import Settings
from brook.stores.base import Store

RUNS = 200  # in one transaction


def clean_all(store: Store, limits: Settings, now: float) -> dict[str, int]:
    """How many messages of each topic were deleted, if any."""
    cleaned = {name: clean_topic(store, topic, limits, now) for name, topic in store.topics().items()}
    return {name: messages for name, messages in cleaned.items() if messages}


def clean_topic(store: Store, topic: int, limits: Settings, now: float) -> int:
    """How many messages were deleted."""
    before = -math.inf if limits.keep_seconds is None else now - limits.keep_seconds
    excess = 0 if limits.keep_bytes is None else max(store.stored_bytes(topic) - limits.keep_bytes, 0)
    if before < 0 and not excess:
        return 0
    first: int | None = 0
    messages = 0
    while first is not None:
        step = store.clean(topic, first, before, excess, runs=RUNS)
        excess -= step.bytes
        messages += step.messages
        first = step.next
    return messages

"""The account of one bucket of messages: bit arithmetic on who came where.

sent = acked + refused + unknown + unanswered      an id with several outcomes counts once, acked last
expected     acked, and sent to a topic that the group reads
lost         expected, and never delivered intact
recovered    unknown or unanswered, and delivered
resurrected  refused, and delivered
phantom      delivered intact, and never sent
censored     sent after the warm-up, and never answered; of a group, lost
"""

from typing import NamedTuple

import numpy as np

from ackworth.model.outcome import Outcome
from ackworth.pipeline.compressed import compress
from ackworth.pipeline.context import Context
from ackworth.pipeline.ids import BUCKET, Bits, Int64s, count, places_in
from ackworth.pipeline.seen import Came

Kind = tuple[str, int]  # what happened to messages, and the outcome or the group that it was

NAMED = 100  # so many of the offending messages are named

_NOBODY: Bits = np.zeros(BUCKET // 8, np.uint8)
_NOTHING = Came(_NOBODY, None)


class GroupBalance(NamedTuple):
    """What a group has and lacks."""

    counts: dict[str, int]
    sets: dict[str, bytes]  # what later stages look at, compressed; empty ones are left out
    named: dict[str, Int64s]


class Balance(NamedTuple):
    counts: dict[str, int]
    defects: dict[str, int]
    groups: list[GroupBalance]


def balance(context: Context, bucket: int, came: dict[Kind, Came]) -> Balance:
    def once(what: str, which: int = 0) -> Bits:
        return came.get((what, which), _NOTHING).once

    sent = once("sent")
    refused = once("outcome", Outcome.REFUSED) & sent
    unknown = once("outcome", Outcome.UNKNOWN) & sent & ~refused
    acked = np.asarray(once("answered") & sent & ~refused & ~unknown, np.uint8)
    measured = once("sent warm") if context.warms_up else sent
    groups = []
    for number, group in enumerate(context.trial.groups):
        expected: Bits = acked if group.topics is None else acked & once("sent to", number)
        delivered = came.get(("delivered", number), _NOTHING)
        groups.append(_group(bucket, sent, acked, refused, expected, delivered, measured))
    unsure = sent & ~acked & ~refused
    came_anywhere = np.bitwise_or.reduce([once("delivered", number) for number in range(len(groups))])
    counts = {"sent": sent, "acked": acked, "refused": refused, "unknown": unknown}
    counts |= {"censored": unsure & measured, "recovered": unsure & came_anywhere}
    return Balance({what: count(bits) for what, bits in counts.items()}, _defects(came, sent), groups)


def _group(
    bucket: int, sent: Bits, acked: Bits, refused: Bits, expected: Bits, delivered: Came, measured: Bits
) -> GroupBalance:
    got = delivered.once
    lost, kept, phantom, resurrected = expected & ~got, expected & got, got & ~sent, got & refused
    counts = {
        "expected": expected,
        "distinct": got & sent,
        "lost": lost,
        "recovered": got & sent & ~acked & ~refused,
        "resurrected": resurrected,
        "phantom": phantom,
        "censored": lost & measured,
    }
    sets = {"lost": lost, "kept": kept, "phantom": phantom, "again": _or_nobody(delivered.again)}
    named = {"resurrected": resurrected, "phantom": phantom}
    return GroupBalance(
        {what: count(bits) for what, bits in counts.items()},
        {what: compress(bits.tobytes()) for what, bits in sets.items() if bits.any()},
        {what: places_in(bucket, bits, NAMED) for what, bits in named.items() if bits.any()},
    )


def _defects(came: dict[Kind, Came], sent: Bits) -> dict[str, int]:
    """What cannot be, if the record is right."""
    answered, sends = came.get(("answered", 0), _NOTHING), came.get(("sent", 0), _NOTHING)
    return {
        "messages with several outcomes": count(_or_nobody(answered.again)),
        "messages that were sent twice": count(_or_nobody(sends.again)),
        "outcomes of messages that were never sent": count(answered.once & ~sent),
    }


def _or_nobody(bits: Bits | None) -> Bits:
    return _NOBODY if bits is None else bits

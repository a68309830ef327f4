"""JetStream in bulk: publishing with numbered acks, and what stands in acks and in deliveries.

A message is published with a reply subject that ends with its number, so an ack tells which it is of:

    PUB ackworth.topic-007 _ACK.5f3a90c1.000000001234 128
    MSG _ACK.5f3a90c1.000000001234 1 33
    {"stream":"ackworth", "seq":98765}

A delivery has a reply subject too, and whoever publishes to that acknowledges it. Its numbers say how often the
message was delivered, where it is in the stream and in the group, when it was stored, and how many are to come:

    MSG ackworth.topic-007 1 $JS.ACK.ackworth.group-0.1.98765.98765.1731716255123456789.42 128
"""

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ackworth.driver.codec.columns import BatchWriter, Bools, Bytes, Int64s, are_digits, between, leading, numbers
from ackworth.driver.codec.nats import BadFrame, Messages

ID_DIGITS = 12
_ACK = re.compile(rb'\{"stream":"[^"\\]*", ?"seq":([0-9]+)(,"domain":"[^"\\]*")?\}')
_DELIVERY = re.compile(
    rb"\$JS\.ACK\.(?:[^.]+\.[^.]+\.)?[^.]+\.[^.]+"  # perhaps a domain and an account; stream and group
    rb"\.([0-9]{1,18})\.([0-9]{1,18})\.[0-9]+\.[0-9]+\.[0-9]+(?:\.[^.]+)?"
)
_DOT = ord(".")
_ZERO = np.uint8(ord("0"))


def publishes(stream: str, topics: Sequence[str], inbox: str) -> BatchWriter:
    heads = [f"PUB {stream}.{topic} {inbox}.".encode() for topic in topics]
    return BatchWriter(heads, digits=ID_DIGITS, middle=b" ", after=b"\r\n", end=b"\r\n")


# ---- acks --------------------------------------------------------------------------------------------------


def numbers_of(acks: Messages) -> Int64s:
    """The numbers of the messages that they are answers to. Raises BadFrame."""
    ids = acks.subjects[:, -ID_DIGITS:]
    if ids.shape[1] < ID_DIGITS or not are_digits(ids).all():
        raise BadFrame(f"{acks.subjects[0].tobytes()!r} has no number at its end")
    return numbers(ids)


def are_acks(answers: Messages) -> Bools:
    """Which of them say, in the usual words, that a message is stored."""
    first = answers.bodies[0].tobytes()
    found = _ACK.fullmatch(first)
    if found is None:
        return np.zeros(len(answers), bool)
    begin, end = found.span(1)
    at = answers.shape.body.start
    fits = answers.rows.has(at, first[:begin]) & answers.rows.has(at + end, first[end:])
    return fits & are_digits(answers.bodies[:, begin:end])


def number_of(subject: bytes) -> int:
    """The same for one. Raises BadFrame."""
    number = subject[-ID_DIGITS:]
    if len(number) < ID_DIGITS or not number.isdigit():
        raise BadFrame(f"{subject!r} has no number at its end")
    return int(number)


def why_not(answer: bytes) -> str | None:
    """What an answer gives as the reason for not storing a message; None if it is stored. Raises BadFrame."""
    match read_json(answer):
        case {"error": {"description": str() as why}}:
            return why
        case {"seq": int() as place} if place > 0:
            return None
    raise BadFrame(f"an answer to a message cannot be {answer[:60]!r}")


def read_json(answer: bytes) -> dict[str, Any]:
    """Raises BadFrame if it is none."""
    try:
        said = json.loads(answer)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise BadFrame(f"an answer cannot be {answer[:60]!r}")
    return said


# ---- deliveries --------------------------------------------------------------------------------------------


def delivered(replies: Bytes) -> tuple[Int64s, Int64s]:
    """How often each message was delivered, and its place in the stream. Raises BadFrame."""
    counts, places = [], []
    while len(replies):
        found = _DELIVERY.fullmatch(replies[0].tobytes())
        if found is None:
            raise BadFrame(f"{replies[0].tobytes()[:80]!r} acknowledges nothing")
        alike = _alike(replies, found.start(1))
        counts.append(numbers(alike[:, slice(*found.span(1))]))
        places.append(numbers(alike[:, slice(*found.span(2))]))
        replies = replies[len(alike) :]
    return np.concatenate(counts), np.concatenate(places)


def _alike(replies: Bytes, numbers_at: int) -> Bytes:
    """Those at the beginning that have the first one's words, and dots where it has them, and digits elsewhere."""
    words, tail = replies[:, :numbers_at], replies[:, numbers_at:]
    dots = tail[0] == _DOT
    fits = (words == words[0]).all(axis=1) & ((tail == _DOT) == dots).all(axis=1)
    fits &= ((tail - _ZERO <= 9) | dots).all(axis=1)
    fits[0] = True  # whatever follows its numbers
    return replies[: leading(fits)]


def acknowledgements(replies: Bytes, said: bytes) -> Bytes:
    """What is published to acknowledge each of them, or to say something else of them."""
    return between(b"PUB ", replies, b" %d\r\n%b\r\n" % (len(said), said))

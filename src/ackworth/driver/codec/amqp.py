"""AMQP 0-9-1, the protocol of RabbitMQ, command by command.

A frame is, with all numbers big endian:

    kind (1 byte), channel (2), size (4), payload of that size, 0xCE

A command is a method's frame, and where it carries a message, a header's frame and as many frames of the body
as its size asks for. What goes and comes in bulk is in `amqp_sending` and `amqp_receiving`.

Whatever is no AMQP raises BadFrame, wherever the bytes were split on the way.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from ackworth.driver.codec import Unreadable

GREETING = b"AMQP\0\0\x09\x01"
CHANNEL = 1  # the one that we use; 0 is the connection's own
FRAME_END = 0xCE
FRAME_EXTRA = 8  # what a frame takes beside its payload
FRAME_MAX = 128 << 10  # what RabbitMQ proposes, and the most that we take
_MOST_BYTES = 512 << 20  # the largest message that RabbitMQ takes, whatever it is told
METHOD_FRAME, HEADER_FRAME, BODY_FRAME, HEARTBEAT_FRAME = 1, 2, 3, 8
_HEAD = struct.Struct(">BHI")
_CONTENT = struct.Struct(">HHQ")  # of a header's frame: class, weight, size of the body; properties follow
BASIC = 60  # the class of all that has to do with messages
PERSISTENT_WITH_TIMESTAMP = 0x1040  # the properties that our messages have: delivery-mode and timestamp
HEARTBEAT = _HEAD.pack(HEARTBEAT_FRAME, 0, 0) + bytes([FRAME_END])


class BadFrame(Unreadable):
    """These bytes are no AMQP, or make no sense here."""

    protocol = "AMQP"


class Method(IntEnum):
    """A class and a method of it, as they stand in a frame."""

    HEARTBEAT = 0  # no method, but a frame of its own kind
    CONNECTION_START = 10 << 16 | 10
    CONNECTION_START_OK = 10 << 16 | 11
    CONNECTION_TUNE = 10 << 16 | 30
    CONNECTION_TUNE_OK = 10 << 16 | 31
    CONNECTION_OPEN = 10 << 16 | 40
    CONNECTION_OPEN_OK = 10 << 16 | 41
    CONNECTION_CLOSE = 10 << 16 | 50
    CHANNEL_OPEN = 20 << 16 | 10
    CHANNEL_OPEN_OK = 20 << 16 | 11
    CHANNEL_CLOSE = 20 << 16 | 40
    EXCHANGE_DECLARE = 40 << 16 | 10
    EXCHANGE_DECLARE_OK = 40 << 16 | 11
    EXCHANGE_DELETE = 40 << 16 | 20
    EXCHANGE_DELETE_OK = 40 << 16 | 21
    QUEUE_DECLARE = 50 << 16 | 10
    QUEUE_DECLARE_OK = 50 << 16 | 11
    QUEUE_BIND = 50 << 16 | 20
    QUEUE_BIND_OK = 50 << 16 | 21
    QUEUE_DELETE = 50 << 16 | 40
    QUEUE_DELETE_OK = 50 << 16 | 41
    BASIC_QOS = 60 << 16 | 10
    BASIC_QOS_OK = 60 << 16 | 11
    BASIC_CONSUME = 60 << 16 | 20
    BASIC_CONSUME_OK = 60 << 16 | 21
    BASIC_CANCEL = 60 << 16 | 30
    BASIC_PUBLISH = 60 << 16 | 40
    BASIC_RETURN = 60 << 16 | 50
    BASIC_DELIVER = 60 << 16 | 60
    BASIC_ACK = 60 << 16 | 80
    BASIC_NACK = 60 << 16 | 120
    CONFIRM_SELECT = 85 << 16 | 10
    CONFIRM_SELECT_OK = 85 << 16 | 11


_CARRIERS = (Method.BASIC_RETURN, Method.BASIC_DELIVER)


@dataclass(frozen=True)
class Command:
    method: int
    arguments: bytes = b""
    properties: bytes = b""  # of the message, if it carries one
    body: bytes = b""


# ---- writing ---------------------------------------------------------------------------------------------


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return _HEAD.pack(kind, channel, len(payload)) + payload + bytes([FRAME_END])


def command(method: Method, *arguments: bytes, channel: int = CHANNEL) -> bytes:
    return frame(METHOD_FRAME, channel, b"".join([struct.pack(">I", method), *arguments]))


def publish(exchange: str, key: str, number: int, body: bytes, frame_max: int = FRAME_MAX) -> bytes:
    """A persistent message that comes back if no queue takes it; its number is in its timestamp."""
    arguments = bytes(2) + short_string(exchange) + short_string(key) + b"\1"  # mandatory
    properties = struct.pack(">HBQ", PERSISTENT_WITH_TIMESTAMP, 2, number)
    most = frame_max - FRAME_EXTRA
    parts = [frame(BODY_FRAME, CHANNEL, body[at : at + most]) for at in range(0, len(body), most)]
    header = frame(HEADER_FRAME, CHANNEL, _CONTENT.pack(BASIC, 0, len(body)) + properties)
    return b"".join([command(Method.BASIC_PUBLISH, arguments), header, *parts])


def short_string(text: str) -> bytes:
    encoded = text.encode()
    return bytes([len(encoded)]) + encoded


def long_string(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">I", len(encoded)) + encoded


Field = str | int | bool | Mapping[str, "Field"]


def table(fields: Mapping[str, Field]) -> bytes:
    content = b"".join(short_string(name) + _field(value) for name, value in fields.items())
    return struct.pack(">I", len(content)) + content


def _field(value: Field) -> bytes:
    if isinstance(value, bool):
        return b"t" + bytes([value])
    if isinstance(value, int):
        return b"l" + struct.pack(">q", value)
    if isinstance(value, str):
        return b"S" + long_string(value)
    return b"F" + table(value)


# ---- reading ---------------------------------------------------------------------------------------------


def parse(data: bytes, at: int) -> tuple[Command, int] | None:
    """The command that begins there, and where it ends; None if not all of it is here yet."""
    found = _parse_frame(data, at)
    if found is None:
        return None
    kind, channel, payload, after = found
    if kind == HEARTBEAT_FRAME:
        return Command(Method.HEARTBEAT), after
    if kind != METHOD_FRAME or len(payload) < 4:
        raise BadFrame(f"a command cannot begin with a frame of kind {kind} and {len(payload)} bytes")
    method, arguments = int.from_bytes(payload[:4]), payload[4:]
    if method not in _CARRIERS:
        return Command(method, arguments), after
    content = _parse_content(data, after, channel)
    return content and (Command(method, arguments, *content[:2]), content[2])


def _parse_frame(data: bytes, at: int) -> tuple[int, int, bytes, int] | None:
    """Kind, channel, payload, and where it ends."""
    if data[at : at + 1] not in (b"\1", b"\2", b"\3", b"\x08", b""):
        raise BadFrame(f"a frame cannot begin with {data[at : at + 1]!r}")
    if len(data) - at < _HEAD.size:
        return None
    kind, channel, size = _HEAD.unpack_from(data, at)
    if size > FRAME_MAX - FRAME_EXTRA:
        raise BadFrame(f"a frame of {size} bytes is larger than was agreed")
    begin = at + _HEAD.size
    if len(data) <= begin + size:
        return None
    if data[begin + size] != FRAME_END:
        raise BadFrame("a frame does not end where it says")
    return kind, channel, data[begin : begin + size], begin + size + 1


def _parse_content(data: bytes, at: int, channel: int) -> tuple[bytes, bytes, int] | None:
    """The properties and the body of a message, and where it ends."""
    found = _parse_frame(data, at)
    if found is None:
        return None
    kind, its_channel, payload, at = found
    if (kind, its_channel) != (HEADER_FRAME, channel) or len(payload) < _CONTENT.size:
        raise BadFrame("a message has no header")
    _, _, size = _CONTENT.unpack_from(payload)
    if size > _MOST_BYTES:
        raise BadFrame(f"a message of {size} bytes")
    body = _parse_body(data, at, channel, size)
    return body and (payload[_CONTENT.size :], *body)


def _parse_body(data: bytes, at: int, channel: int, size: int) -> tuple[bytes, int] | None:
    parts, missing = [], size
    while missing:
        found = _parse_frame(data, at)
        if found is None:
            return None
        kind, its_channel, payload, at = found
        if (kind, its_channel) != (BODY_FRAME, channel) or not 0 < len(payload) <= missing:
            raise BadFrame("a body is not as long as it says")
        parts.append(payload)
        missing -= len(payload)
    return b"".join(parts), at


class Arguments:
    """What a method says, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def short_string(self) -> str:
        return self.take(self.number(1)).decode(errors="replace")

    def table(self) -> dict[str, Field]:
        """As `table` writes it. Raises BadFrame for what it would not write."""
        inner, found = Arguments(self.take(self.number(4))), dict[str, Field]()
        while inner._at < len(inner._data):
            name = inner.short_string()
            found[name] = inner._field()
        return found

    def _field(self) -> Field:
        match self.take(1):
            case b"t":
                return bool(self.number(1))
            case b"l":
                return int.from_bytes(self.take(8), signed=True)
            case b"S":
                return self.take(self.number(4)).decode(errors="replace")
            case b"F":
                return self.table()
            case kind:
                raise BadFrame(f"a field of kind {kind!r}")

    def take(self, size: int) -> bytes:
        found = self._data[self._at : self._at + size]
        if len(found) < size:
            raise BadFrame("a method says less than it must")
        self._at += size
        return found

"""The commands of AMQP 0-9-1 that a driver sends one by one."""

from collections.abc import Mapping
from struct import pack

from ackworth.driver.codec.amqp import Field, Method, command, long_string, short_string, table

_PASSIVE, _DURABLE = 0b01, 0b10
_CAPABILITIES = ("publisher_confirms", "basic.nack", "consumer_cancel_notify", "authentication_failure_close")

OPEN_CHANNEL = command(Method.CHANNEL_OPEN, bytes(1))
SELECT_CONFIRMS = command(Method.CONFIRM_SELECT, bytes(1))


def start_ok(user: str | None, password: str | None) -> bytes:
    """Nobody in particular is whoever the certificate says that we are."""
    properties = table({"product": "Ackworth", "capabilities": dict.fromkeys(_CAPABILITIES, True)})
    how, who = ("EXTERNAL", "") if user is None else ("PLAIN", f"\0{user}\0{password or ''}")
    answer = short_string(how) + long_string(who) + short_string("en_US")
    return command(Method.CONNECTION_START_OK, properties, answer, channel=0)


def tune_ok(channels: int, frame_max: int, heartbeat: int) -> bytes:
    return command(Method.CONNECTION_TUNE_OK, pack(">HIH", channels, frame_max, heartbeat), channel=0)


def open_host(name: str) -> bytes:
    return command(Method.CONNECTION_OPEN, short_string(name), bytes(2), channel=0)


def declare_exchange(name: str) -> bytes:
    names = short_string(name) + short_string("direct")
    return command(Method.EXCHANGE_DECLARE, bytes(2), names, bytes([_DURABLE]), table({}))


def delete_exchange(name: str) -> bytes:
    return command(Method.EXCHANGE_DELETE, bytes(2), short_string(name), bytes(1))


def declare_queue(name: str, arguments: Mapping[str, Field]) -> bytes:
    return command(Method.QUEUE_DECLARE, bytes(2), short_string(name), bytes([_DURABLE]), table(arguments))


def count_queue(name: str) -> bytes:
    """Answered like a declaration, with how many messages and consumers it has."""
    return command(Method.QUEUE_DECLARE, bytes(2), short_string(name), bytes([_PASSIVE]), table({}))


def delete_queue(name: str) -> bytes:
    """Whether or not it is there, and whatever is in it."""
    return command(Method.QUEUE_DELETE, bytes(2), short_string(name), bytes(1))


def bind(queue: str, exchange: str, key: str) -> bytes:
    names = short_string(queue) + short_string(exchange) + short_string(key)
    return command(Method.QUEUE_BIND, bytes(2), names, bytes(1), table({}))


def prefetch(each: int) -> bytes:
    """How many messages a consumer is given before it acknowledges some."""
    return command(Method.BASIC_QOS, pack(">IHB", 0, each, 0))


def consume(queue: str, tag: str) -> bytes:
    return command(Method.BASIC_CONSUME, bytes(2), short_string(queue), short_string(tag), bytes(1), table({}))


def acknowledge(tag: int, *, multiple: bool) -> bytes:
    return command(Method.BASIC_ACK, pack(">QB", tag, multiple))

"""RabbitMQ over AMQP 0-9-1: an exchange for all, a queue for each topic and group, an ack a publisher confirm.

Messages are persistent and mandatory: one that no queue takes comes back, and is refused. Its seq is in its
timestamp, so that it is known which one came back.

A `basic.nack` is no definite no. RabbitMQ sends one when a queue's process dies, which may have stored the message,
and when one of several queues is full, while the others have taken it. Nor is the end of a channel: it does not
say which message it is about, nor what became of those before it.
"""

import contextlib
import time
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from ackworth.driver.codec import amqp_commands as write
from ackworth.driver.codec.amqp import (
    FRAME_MAX,
    GREETING,
    HEARTBEAT,
    Arguments,
    BadFrame,
    Command,
    Method,
    parse,
)
from ackworth.driver.codec.amqp_receiving import TAG_WIDTH, Block, Census, Deliveries
from ackworth.driver.codec.amqp_sending import CONFIRM_BYTES, Publishes, Unconfirmed, confirms
from ackworth.driver.contract import (
    NO_ANSWERS,
    Address,
    Answers,
    ConnectionLost,
    Incoming,
    Outgoing,
    answered,
    closed_if_it_fails,
    joined,
)
from ackworth.driver.matrix import Matrix, stacked
from ackworth.driver.wire import Deadline, lost_if, reach
from ackworth.model.outcome import Outcome

# Codes with which RabbitMQ gives a message back.
DEFINITE = {312: "no queue takes it (NO_ROUTE)"}
REASONS = (
    "",
    "no answer in time",
    "the connection broke",
    "an answer that is no AMQP",
    "the broker closed the connection or the channel",
    "the broker takes no responsibility for it (basic.nack)",
    "it came back for an unclear reason",
    *DEFINITE.values(),
)
_BROKE, _NO_AMQP, _CLOSED, _NACKED, _UNCLEAR = 2, 3, 4, 5, 6
_amqp_or_lost = partial(lost_if, BadFrame, _NO_AMQP)
_ANSWER_WITHIN = 10.0  # seconds, for what is answered at once
_ENDS = (Method.CONNECTION_CLOSE, Method.CHANNEL_CLOSE)
_UNACKNOWLEDGED = 4096  # messages that a receiver is given before it acknowledges some


def prepare(address: Address, topics: Sequence[str], groups: Sequence[str]) -> None:
    connection = _Connection(address)
    with contextlib.closing(connection):
        exchange = address["exchange"]
        connection.ask([write.declare_exchange(exchange)], Method.EXCHANGE_DECLARE_OK)
        for group in groups:
            queues = [(_queue(topic, group), topic) for topic in topics]
            declares = [write.declare_queue(name, address["arguments"]) for name, _ in queues]
            connection.ask(declares, Method.QUEUE_DECLARE_OK)
            connection.ask([write.bind(name, exchange, topic) for name, topic in queues], Method.QUEUE_BIND_OK)


def version(address: Address) -> str:
    with contextlib.closing(_Connection(address)) as connection, _amqp_or_lost():
        connection.start.take(2)  # the version of the protocol
        said = connection.start.table()
        return f"{said.get('product')} {said.get('version')}"


def remove(address: Address, topics: Sequence[str], groups: Sequence[str]) -> None:
    with contextlib.closing(_Connection(address)) as connection:
        deletes = [write.delete_queue(_queue(topic, group)) for group in groups for topic in topics]
        connection.ask(deletes, Method.QUEUE_DELETE_OK)
        connection.ask([write.delete_exchange(address["exchange"])], Method.EXCHANGE_DELETE_OK)


def _queue(topic: str, group: str) -> str:
    return f"{topic}.{group}"


class _Connection:
    """A connection with one open channel, kept alive by heartbeats."""

    def __init__(self, address: Address) -> None:
        self.wire = reach(address, _BROKE)
        self.data = b""  # what has come and is not read yet
        self._beat = float("inf")
        self._heard = self._spoke = time.monotonic()
        with closed_if_it_fails(self), _amqp_or_lost():
            self._open(address)

    def _open(self, address: Address) -> None:
        self.send(GREETING)
        self.start = self._expect(Method.CONNECTION_START)
        self.send(write.start_ok(address["user"], address["password"]))
        tune = self._expect(Method.CONNECTION_TUNE)
        channels, frame_max, beat = tune.number(2), tune.number(4), tune.number(2)
        self.frame_max = min(frame_max or FRAME_MAX, FRAME_MAX)
        self._beat = beat or float("inf")
        self.send(write.tune_ok(channels, self.frame_max, beat))
        self.send(write.open_host(address["host_name"]))
        self._expect(Method.CONNECTION_OPEN_OK)
        self.ask([write.OPEN_CHANNEL], Method.CHANNEL_OPEN_OK)

    def ask(self, commands: Sequence[bytes], answer: Method) -> None:
        """Send commands each of which has this answer, and wait for all of them. Raises ConnectionLost."""
        self.send(b"".join(commands))
        for _ in commands:
            self._expect(answer)

    def _expect(self, method: Method) -> Arguments:
        deadline = Deadline(_ANSWER_WITHIN)
        while True:
            with _amqp_or_lost():
                found = parse(self.data, 0)
            if found is not None:
                said, after = found
                self.data = self.data[after:]
                if said.method == method:
                    return Arguments(said.arguments)
                check(said)
            elif not self.fill(deadline.left()):
                deadline.check(_BROKE)

    def send(self, data: bytes | Matrix) -> None:
        self.wire.send(data)
        self._spoke = time.monotonic()

    def fill(self, wait: float) -> bool:
        """Whether anything has come, waiting at most so many seconds; it is then in the data. Raises ConnectionLost."""
        more = self.wire.receive(wait)
        now = time.monotonic()
        if now - self._spoke > self._beat / 2:
            self.send(HEARTBEAT)
        if more:
            self.data += more
            self._heard = now
        elif now - self._heard > 2 * self._beat:
            raise ConnectionLost(f"no heartbeat for {2 * self._beat:g} s", _BROKE)
        return bool(more)

    def close(self) -> None:
        self.wire.close()


def check(said: Command) -> None:
    """Of what nobody waited for, only a heartbeat is fine. Raises ConnectionLost."""
    if said.method == Method.HEARTBEAT:
        return
    with _amqp_or_lost():
        arguments = Arguments(said.arguments)
        if said.method in _ENDS:
            raise ConnectionLost(f"{arguments.number(2)} {arguments.short_string()}", _CLOSED)
        if said.method == Method.BASIC_CANCEL:
            raise ConnectionLost(f"the queue of consumer {arguments.short_string()} is gone", _CLOSED)
        raise BadFrame(f"method {said.method >> 16}.{said.method & 0xFFFF} is no answer to anything")


class Sender:
    def __init__(self, address: Address, topics: Sequence[str], producer: int) -> None:
        self._connection = _Connection(address)
        with closed_if_it_fails(self._connection):
            self._connection.ask([write.SELECT_CONFIRMS], Method.CONFIRM_SELECT_OK)
        self._publishes = Publishes(address["exchange"], topics, self._connection.frame_max)
        self._unconfirmed = Unconfirmed()

    def send(self, batch: Outgoing) -> None:
        self._unconfirmed.add(batch.first_seq, len(batch.sizes))
        self._connection.send(self._publishes.encode(batch.first_seq, batch.topics, batch.bodies, batch.sizes))

    def answers(self, wait: float) -> Answers:
        self._connection.fill(wait)
        return joined(self._read())

    def _read(self) -> Iterator[Answers]:
        data, at = self._connection.data, 0
        with _amqp_or_lost():
            while True:
                said = confirms(data, at)
                if len(said):
                    seqs = self._unconfirmed.settle(said)
                    yield answered(seqs, *((Outcome.ACKED, 0) if said.acked else (Outcome.UNKNOWN, _NACKED)))
                    at += len(said) * CONFIRM_BYTES
                elif (other := parse(data, at)) is not None:
                    yield self._given_back(other[0])
                    at = other[1]
                else:
                    break
        self._connection.data = data[at:]

    def _given_back(self, said: Command) -> Answers:
        if said.method != Method.BASIC_RETURN:
            check(said)
            return NO_ANSWERS
        code = Arguments(said.arguments).number(2)
        seqs = self._unconfirmed.give_back(_number(said.properties))
        if code in DEFINITE:
            return answered(seqs, Outcome.REFUSED, REASONS.index(DEFINITE[code]))
        return answered(seqs, Outcome.UNKNOWN, _UNCLEAR)

    def fileno(self) -> int:
        return self._connection.wire.fileno()

    def close(self) -> None:
        self._connection.close()


def _number(properties: bytes) -> int:
    """What `publish` wrote into the timestamp: flags and delivery-mode are before it."""
    arguments = Arguments(properties)
    arguments.take(3)
    return arguments.number(8)


class Receiver:
    def __init__(self, address: Address, topics: Sequence[str], group: str, consumer: int) -> None:
        self._connection = _Connection(address)
        self._queues = [_queue(topic, group) for topic in topics]
        self._deliveries = Deliveries()
        self._acknowledged = 0  # all up to this tag
        self._census = Census(len(topics), time.monotonic())
        each = max(16, _UNACKNOWLEDGED // len(topics))
        consumes = (write.consume(name, f"{i:0{TAG_WIDTH}d}") for i, name in enumerate(self._queues))
        with closed_if_it_fails(self._connection):
            self._connection.ask([write.prefetch(each)], Method.BASIC_QOS_OK)
            self._connection.send(b"".join(consumes))

    def receive(self, limit: int, wait: float) -> Incoming | None:
        deadline = Deadline(wait)
        while not len(self._deliveries):
            if not self._fill(deadline.left()):
                self._ask_for_a_census()
                return None
        return _incoming(self._deliveries.take(limit))

    @property
    def told_empty(self) -> bool:
        return self._census.empty

    def _fill(self, wait: float) -> bool:
        if not self._connection.fill(wait):
            return False
        with _amqp_or_lost():
            data = self._connection.data
            self._connection.data = data[self._deliveries.feed(data) :]
            if len(self._deliveries):
                self._census.spoil(time.monotonic())
            for said in self._deliveries.others:
                if not self._census.take(said, time.monotonic()) and said.method != Method.BASIC_CONSUME_OK:
                    check(said)
            self._deliveries.others.clear()
        return True

    def _ask_for_a_census(self) -> None:
        if self._census.due(time.monotonic()):
            self._connection.send(b"".join(map(write.count_queue, self._queues)))

    def acknowledge(self, incoming: Incoming) -> None:
        first, last = incoming.token
        if first == self._acknowledged + 1:
            self._connection.send(write.acknowledge(last, multiple=True))
            self._acknowledged = last
        else:  # some before it are not done
            self._connection.send(b"".join(write.acknowledge(tag, multiple=False) for tag in range(first, last + 1)))

    def fileno(self) -> int:
        return self._connection.wire.fileno()

    def close(self) -> None:
        self._connection.close()


def _incoming(blocks: Sequence[Block]) -> Incoming:
    bodies, lengths = stacked([block.bodies for block in blocks])
    return Incoming(
        bodies=bodies,
        lengths=lengths,
        topics=np.concatenate([block.topics for block in blocks]),
        positions=np.full(len(lengths), -1),
        redelivered=np.concatenate([block.redelivered for block in blocks]),
        token=(int(blocks[0].tags[0]), int(blocks[-1].tags[-1])),
    )

"""STOMP 1.2 as ActiveMQ Classic speaks it: a topic is a virtual topic, and each group has a queue of its own for it.

A message sent to a virtual topic is put into the queues that are there. So that they are there after a crash too,
`prepare` sends each a greeting, which the broker stores; receivers take greetings away and tell nobody.

An ack is the receipt of a message, whose id is the message's number. A broker pushes messages, and never says that
there are none; so a receiver that gets nothing asks for a receipt now and then, and takes it for that.
"""

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np

from ackworth.driver.codec.columns import BatchWriter, Names, are_digits, between, numbers
from ackworth.driver.codec.stomp import BadFrame, Frames, Reader, frame
from ackworth.driver.contract import (
    Address,
    Answers,
    ConnectionLost,
    Incoming,
    Int64s,
    Outgoing,
    answered,
    closed_if_it_fails,
)
from ackworth.driver.matrix import stacked
from ackworth.driver.wire import Deadline, InFlight, lost_if, reach
from ackworth.model.outcome import Outcome

# What stands in an error that ActiveMQ raises before it has stored anything. That a store or the memory is full is none
# of them: it may be so for the second queue of a topic, when the first has the message.
DEFINITE = {
    "is not authorized to write to": "not permitted",
}
REASONS = (
    "",
    "no answer in time",
    "the connection broke",
    "an answer that is no STOMP",
    "an error that may mean anything",
    *DEFINITE.values(),
)
_BROKE, _NO_STOMP, _UNCLEAR = 2, 3, 4
_ID_DIGITS = 12
_RECEIPT_BYTES = len("\nRECEIPT\nreceipt-id:000000000000\n\n\0")
_ANSWER_WITHIN = 10.0  # seconds, for what is answered at once
_BYE_WITHIN = 1.0
_ASK_EVERY = 0.25  # seconds between signs of life that a receiver asks for while nothing comes
_SIGN_LASTS = 1.0  # seconds
_GREETING = b"ackworth-greeting"
_TAKE_OUT = 4096  # messages at once


def prepare(address: Address, topics: Sequence[str], groups: Sequence[str]) -> None:
    queues = [queue for group in groups for queue in _queues(address, group, topics)]
    head = {"persistent": "true", _GREETING.decode().replace("-", "_"): "true", "content_length": 0}
    greetings = [frame("SEND", destination=queue, receipt=i, **head) for i, queue in enumerate(queues)]
    with contextlib.closing(_Connection(address)) as connection:
        connection.wire.send(b"".join(greetings))
        connection.await_receipts(len(greetings))


def version(address: Address) -> str:
    """'ActiveMQ 5.17.2' from 'ActiveMQ/5.17.2'."""
    with contextlib.closing(_Connection(address)) as connection:
        return connection.server.replace("/", " ")


def remove(address: Address, topics: Sequence[str], groups: Sequence[str]) -> str:
    """STOMP cannot delete a queue; so all that is in it is taken out."""
    for group in groups:
        with contextlib.closing(Receiver(address, topics, group, 0)) as receiver:
            _take_out_all(receiver)
    first, *_, last = [queue for group in groups for queue in _queues(address, group, topics)] * 2
    return f"the queues {first} to {last} are empty, and stay: STOMP cannot delete them, their owner can"


def _take_out_all(receiver: "Receiver") -> None:
    found, deadline = None, Deadline(_ANSWER_WITHIN)
    while found is not None or not receiver.told_empty:
        found = receiver.receive(_TAKE_OUT, 2 * _ASK_EVERY)
        if found is not None:
            receiver.acknowledge(found)
            deadline = Deadline(_ANSWER_WITHIN)
        else:
            deadline.check(_BROKE)


def _queues(address: Address, group: str, topics: Sequence[str]) -> list[str]:
    return [f"/queue/Consumer.{group}.{address['prefix']}.{topic}" for topic in topics]


class _Connection:
    """A connection that the broker has accepted."""

    def __init__(self, address: Address) -> None:
        self.wire = reach(address, _BROKE)
        self._reader = Reader()
        greeting = {"accept_version": "1.2", "host": address["host"], "heart_beat": "0,0"}
        with closed_if_it_fails(self):
            self.wire.send(frame("CONNECT", **greeting, **_login(address)))
            self.server = self._await(b"CONNECTED", 1, _ANSWER_WITHIN)[-1].value(b"server")

    def frames(self, wait: float) -> Iterator[Frames]:
        """What has come; waits at most so many seconds for it. Raises ConnectionLost."""
        with lost_if(BadFrame, _NO_STOMP):
            yield from self._reader.take(self.wire.receive(wait))

    def await_receipts(self, count: int, seconds: float = _ANSWER_WITHIN) -> None:
        """Until so many more have come; whatever else comes is dropped. Raises ConnectionLost."""
        self._await(b"RECEIPT", count, seconds)

    def _await(self, command: bytes, count: int, seconds: float) -> list[Frames]:
        """The last of them."""
        deadline = Deadline(seconds)
        wanted: list[Frames] = []
        while count:
            frames = list(self.frames(deadline.left()))
            for error in (found for found in frames if found.command == b"ERROR"):
                raise ConnectionLost(error.value(b"message"), _UNCLEAR)
            wanted = [found for found in frames if found.command == command]
            count -= min(count, sum(map(len, wanted)))
            if wanted:
                deadline = Deadline(seconds)
            else:
                deadline.check(_BROKE)
        return wanted

    def close(self) -> None:
        self.wire.close()


def _login(address: Address) -> dict[str, str]:
    names = {"login": address.get("user"), "passcode": address.get("password")}
    return {name: value for name, value in names.items() if value is not None}


class Sender:
    def __init__(self, address: Address, topics: Sequence[str], producer: int) -> None:
        self._connection = _Connection(address)
        names = [f"/topic/{address['prefix']}.{topic}" for topic in topics]
        heads = [f"SEND\ndestination:{name}\npersistent:true\nreceipt:".encode() for name in names]
        self._writer = BatchWriter(heads, digits=_ID_DIGITS, middle=b"\ncontent-length:", after=b"\n\n", end=b"\0")
        self._in_flight = InFlight(self._connection.wire, _RECEIPT_BYTES, _NO_STOMP)

    def send(self, batch: Outgoing) -> None:
        self._in_flight.add(batch)
        self._connection.wire.send(self._writer.encode(batch.first_seq, batch.topics, batch.bodies, batch.sizes))

    def answers(self, wait: float) -> Answers:
        return self._in_flight.settle(map(_read_answer, self._connection.frames(wait)))

    def fileno(self) -> int:
        return self._connection.wire.fileno()

    def close(self) -> None:
        self._connection.close()


def _read_answer(frames: Frames) -> Answers:
    if frames.command == b"RECEIPT":
        return answered(_numbers_of(frames), Outcome.ACKED)
    if frames.command == b"ERROR" and b"receipt-id" in frames.shape.headers:
        return answered(_numbers_of(frames), *_meaning(frames.value(b"message")))
    raise ConnectionLost(frames.value(b"message") or f"a {frames.command.decode()} that nobody asked for", _UNCLEAR)


def _numbers_of(frames: Frames) -> Int64s:
    with lost_if(BadFrame, _NO_STOMP):
        ids = frames.values(b"receipt-id")
        if ids.shape[1] != _ID_DIGITS or not are_digits(ids).all():
            raise BadFrame(f"the receipt of {frames.value(b'receipt-id')!r}, which was not sent")
    return numbers(ids)


def _meaning(error: str) -> tuple[int, int]:
    """The outcome and its reason."""
    for phrase, reason in DEFINITE.items():
        if phrase in error:
            return Outcome.REFUSED, REASONS.index(reason)
    return Outcome.UNKNOWN, _UNCLEAR


class Receiver:
    def __init__(self, address: Address, topics: Sequence[str], group: str, consumer: int) -> None:
        self._connection = _Connection(address)
        self._queues = _queues(address, group, topics)
        self._topics = Names(self._queues)
        self._subscribed = self._asked = False
        self._ask_again, self._sign_lasts, self._answer_by = Deadline(0), Deadline(0), Deadline(0)

    @property
    def told_empty(self) -> bool:
        return self._sign_lasts.left() > 0

    def receive(self, limit: int, wait: float) -> Incoming | None:
        if not self._subscribed:
            self._subscribe(limit)
        deadline = Deadline(wait)
        while True:
            if found := self._take(deadline.left()):
                return self._incoming(found)
            self._ask_for_a_sign()
            if not deadline.left():
                return None

    def _subscribe(self, limit: int) -> None:
        """To each queue by its name: a subscription with a wildcard makes a queue of that name, which gets copies."""
        each = max(1, limit // len(self._queues))  # of each, so many are here and not acknowledged at any time
        subscribe = {"ack": "client-individual", "activemq__prefetchSize": each}
        frames = (frame("SUBSCRIBE", id=i, destination=queue, **subscribe) for i, queue in enumerate(self._queues))
        self._connection.wire.send(b"".join(frames))
        self._subscribed = True

    def _take(self, wait: float) -> list[Frames]:
        """The messages that have come, but for greetings."""
        frames = list(self._connection.frames(wait))
        if frames:
            self._answer_by = Deadline(_ANSWER_WITHIN)  # it is at work
        elif self._asked:
            self._answer_by.check(_BROKE)
        for other in (found for found in frames if found.command != b"MESSAGE"):
            self._hear(other)
        messages = [found for found in frames if found.command == b"MESSAGE"]
        greetings = [found for found in messages if _GREETING in found.shape.headers]
        self._acknowledge(greetings)
        if messages:
            self._sign_lasts = Deadline(0)
        return [found for found in messages if found not in greetings]

    def _hear(self, frames: Frames) -> None:
        if frames.command != b"RECEIPT":
            raise ConnectionLost(frames.value(b"message"), _UNCLEAR)
        self._asked = False
        self._ask_again, self._sign_lasts = Deadline(_ASK_EVERY), Deadline(_SIGN_LASTS)

    def _ask_for_a_sign(self) -> None:
        if not self._asked and not self._ask_again.left():
            self._asked, self._answer_by = True, Deadline(_ANSWER_WITHIN)
            self._connection.wire.send(
                frame("BEGIN", transaction="sign") + frame("ABORT", transaction="sign", receipt=0)
            )

    def _incoming(self, found: list[Frames]) -> Incoming:
        bodies, lengths = stacked([frames.bodies for frames in found])
        counts = [len(frames) for frames in found]
        with lost_if((BadFrame, LookupError), _NO_STOMP):
            topics = np.concatenate([self._topics.find(frames.values(b"destination")) for frames in found])
        return Incoming(
            bodies=bodies,
            lengths=lengths,
            topics=topics,
            positions=np.full(len(lengths), -1),
            redelivered=np.repeat([frames.value(b"redelivered") == "true" for frames in found], counts),
            token=found,
        )

    def acknowledge(self, incoming: Incoming) -> None:
        self._acknowledge(incoming.token)

    def _acknowledge(self, found: list[Frames]) -> None:
        with lost_if(BadFrame, _NO_STOMP):
            for frames in found:
                self._connection.wire.send(between(b"ACK\nid:", frames.values(b"ack"), b"\n\n\0"))

    def fileno(self) -> int:
        return self._connection.wire.fileno()

    def close(self) -> None:
        """Not before the broker has read all acknowledgements."""
        with contextlib.suppress(ConnectionLost):
            self._connection.wire.send(frame("DISCONNECT", receipt="bye"))
            self._connection.await_receipts(1 + self._asked, _BYE_WITHIN)
        self._connection.close()

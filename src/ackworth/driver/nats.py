"""NATS JetStream: a stream for all topics, a subject for each, a durable pull consumer for each group.

A receiver asks for a batch and gets it as it becomes ready. When the server says that there is no more, it asks how the
group stands: only if nothing is left and nothing is with anybody, there is nothing. What a receiver has and has not
acknowledged when it closes is given back; what one that died had comes again after a while.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ackworth.driver.codec import jetstream
from ackworth.driver.codec.columns import Names
from ackworth.driver.codec.nats import BadFrame, Control, Messages, Reader, Status, command, publish
from ackworth.driver.contract import Address, Answers, ConnectionLost, Incoming, Outgoing, answered, closed_if_it_fails
from ackworth.driver.matrix import stacked
from ackworth.driver.wire import Deadline, InFlight, Wire, lost_if
from ackworth.model.outcome import Outcome

NO_STREAM = "503"
# What the server says before it has stored anything. An error that it meets while it stores may mean anything.
DEFINITE = {
    NO_STREAM: "no stream takes it (503)",
    "message size exceeds maximum allowed": "larger than the stream allows",
    "insufficient resources": "the server is out of resources",
    "invalid operation on sealed stream": "the stream is sealed",
    "maximum messages exceeded": "the stream is full (messages)",
    "maximum bytes exceeded": "the stream is full (bytes)",
    "maximum messages per subject exceeded": "the topic is full",
}
REASONS = (
    "",
    "no answer in time",
    "the connection broke",
    "an answer that is no NATS",
    "an error that may mean anything",
    *DEFINITE.values(),
)
_BROKE, _NO_NATS, _UNCLEAR = 2, 3, 4
_ACK_BYTES = len('MSG _ACK.5f3a90c1.000000000000 1  30\r\n{"stream":"s", "seq":1}\r\n')  # about the least
_ANSWER_WITHIN = 10.0  # seconds, for what is answered at once
_STAY = 0.25  # seconds that a request for messages stays with the server
_SIGN_LASTS = 1.0  # seconds that it counts that nothing was left: a server that stalls does not say so again
_OVER_AFTER = 1.0  # seconds beyond that, after which it is over unsaid: a server that was paused forgets some
_AGAIN_AFTER = 10.0  # seconds that a message may be with a receiver before another gets it
_GIVE_BACK_WITHIN = 1.0  # seconds; a server that is too slow for it gives the messages to others all the same, later
_MOST_BYTES = 16 << 20  # in one request: a server closes a connection that reads too slowly
_OPTIONS = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True, "lang": "ackworth"}
_REQUEST_IS_OVER = ("404", "408", "409 Message Size Exceeds MaxBytes", "409 Batch Completed")


def prepare(address: Address, topics: Sequence[str], groups: Sequence[str]) -> None:
    connection = _Connection(address)
    stream = address["stream"]
    try:
        connection.ask("$JS.API.INFO")
        if topics:
            connection.ask(f"$JS.API.STREAM.CREATE.{stream}", {"name": stream, "subjects": [f"{stream}.>"]})
        for group in groups:
            config = {
                "durable_name": group,
                "ack_policy": "explicit",
                "ack_wait": int(_AGAIN_AFTER * 1e9),
                "max_ack_pending": -1,
            }
            said = {"stream_name": stream, "config": config}
            connection.ask(f"$JS.API.CONSUMER.DURABLE.CREATE.{stream}.{group}", said)
    finally:
        connection.close()


def version(address: Address) -> str:
    with contextlib.closing(_Connection(address)) as connection:
        connection.ask("$JS.API.INFO")
        return f"nats-server {connection.server.get('version')}"


def remove(address: Address, topics: Sequence[str], groups: Sequence[str]) -> None:
    """All of it is in the stream."""
    stream = address["stream"]
    with contextlib.closing(_Connection(address)) as connection:
        if connection.ask("$JS.API.STREAM.NAMES", {"subject": f"{stream}.>"}).get("streams"):
            connection.ask(f"$JS.API.STREAM.DELETE.{stream}")


class _Connection:
    """A connection that has answered once. What is sent to its inbox comes back through it."""

    def __init__(self, address: Address) -> None:
        self.inbox = f"_ACK.{os.urandom(4).hex()}"
        self.wire = Wire(address, _BROKE)
        self._reader = Reader()
        self._pings = 0  # that are not answered
        self.server: dict[str, Any] = {}  # what it says of itself, before anything else
        with closed_if_it_fails(self):
            self._greet(address)

    def _greet(self, address: Address) -> None:
        self._await(lambda: bool(self.server), _ANSWER_WITHIN)
        _check_tls(self.server, address)
        self.wire.secure()
        options = {**_OPTIONS, **_login(address)}
        self.wire.send(command("CONNECT", json.dumps(options)) + command("SUB", f"{self.inbox}.>", 1))
        self.settle(_ANSWER_WITHIN)

    def settle(self, seconds: float) -> None:
        """Wait until the server has read all that was sent, while nothing else is to come. Raises ConnectionLost."""
        self.wire.send(b"PING\r\n")
        self._pings += 1
        self._await(lambda: not self._pings, seconds)

    def _await(self, done: Callable[[], bool], seconds: float) -> None:
        """Until it is so; what comes to the inbox meanwhile is dropped. Raises ConnectionLost."""
        deadline = Deadline(seconds)
        while not done():
            deadline.check(_BROKE)
            for _ in self.frames(deadline.left()):
                pass

    def frames(self, wait: float) -> Iterator[Messages | Status]:
        """What has come to the inbox; waits at most so many seconds for it. Raises ConnectionLost."""
        with lost_if(BadFrame, _NO_NATS):
            for frame in self._reader.take(self.wire.receive(wait)):
                if isinstance(frame, Control):
                    self._hear(frame)
                else:
                    yield frame

    def _hear(self, control: Control) -> None:
        match control.word:
            case b"INFO":
                self.server = jetstream.read_json(control.rest)
            case b"PING":
                self.wire.send(b"PONG\r\n")
            case b"PONG":
                self._pings -= 1
            case b"-ERR":
                raise ConnectionLost(control.rest.decode(errors="replace"), _UNCLEAR)

    def ask(self, subject: str, said: dict[str, Any] | None = None) -> dict[str, Any]:
        """The answer to a request, while nothing else is to come. Raises ConnectionLost."""
        self.wire.send(publish(subject, f"{self.inbox}.ask", said))
        deadline = Deadline(_ANSWER_WITHIN)
        while True:
            for frame in self.frames(deadline.left()):
                if isinstance(frame, Status):
                    raise ConnectionLost(f"JetStream is not ready ({frame.text})", _UNCLEAR)
                return _read_answer(frame)
            deadline.check(_BROKE)

    def close(self) -> None:
        self.wire.close()


def _check_tls(server: dict[str, Any], address: Address) -> None:
    """A server says first whether it has TLS. Raises ConnectionLost."""
    wanted = address.get("tls") is not None
    if wanted and not (server.get("tls_required") or server.get("tls_available")):
        raise ConnectionLost("the server has no TLS", _UNCLEAR)
    if not wanted and server.get("tls_required"):
        raise ConnectionLost("the server wants TLS", _UNCLEAR)


def _login(address: Address) -> dict[str, str]:
    """Either a user and a password, or a token alone."""
    user, password = address.get("user"), address.get("password")
    if user is not None and password is not None:
        return {"user": user, "pass": password}
    token = user or password
    return {} if token is None else {"auth_token": token}


def _read_answer(frame: Messages) -> dict[str, Any]:
    with lost_if(BadFrame, _NO_NATS):
        answer = jetstream.read_json(frame.bodies[0].tobytes())
    if "error" in answer:
        raise ConnectionLost(str(answer["error"]), _UNCLEAR)
    return answer


class Sender:
    def __init__(self, address: Address, topics: Sequence[str], producer: int) -> None:
        self._connection = _Connection(address)
        self._publishes = jetstream.publishes(address["stream"], topics, self._connection.inbox)
        self._in_flight = InFlight(self._connection.wire, _ACK_BYTES, _NO_NATS)

    def send(self, batch: Outgoing) -> None:
        self._in_flight.add(batch)
        self._connection.wire.send(self._publishes.encode(batch.first_seq, batch.topics, batch.bodies, batch.sizes))

    def answers(self, wait: float) -> Answers:
        frames = self._connection.frames(wait)
        return self._in_flight.settle(part for frame in frames for part in self._read(frame))

    def _read(self, frame: Messages | Status) -> Iterator[Answers]:
        with lost_if(BadFrame, _NO_NATS):
            if isinstance(frame, Status):
                yield answered(np.array([jetstream.number_of(frame.subject)]), *_meaning(frame.text))
                return
            seqs, stored = jetstream.numbers_of(frame), jetstream.are_acks(frame)
            yield answered(seqs[stored], Outcome.ACKED)
            for i in np.flatnonzero(~stored):
                yield answered(seqs[i : i + 1], *_meaning(jetstream.why_not(frame.bodies[i].tobytes())))

    def fileno(self) -> int:
        return self._connection.wire.fileno()

    def close(self) -> None:
        self._connection.close()


def _meaning(why_not: str | None) -> tuple[int, int]:
    """The outcome and its reason."""
    if why_not is None:
        return Outcome.ACKED, 0
    if why_not in DEFINITE:
        return Outcome.REFUSED, REASONS.index(DEFINITE[why_not])
    return Outcome.UNKNOWN, _UNCLEAR


class Receiver:
    def __init__(self, address: Address, topics: Sequence[str], group: str, consumer: int) -> None:
        self._connection = _Connection(address)
        self._topics = Names([f"{address['stream']}.{topic}" for topic in topics], others=f"{address['stream']}.")
        self._group = f"{address['stream']}.{group}"
        self._requests = 0  # so far
        self._to_come = 0  # how many the server may still send for the last
        self._answer_by, self._over_at = Deadline(0), Deadline(0)
        self._held: list[Messages] = []  # what was received and is not acknowledged
        self._sign_lasts = Deadline(0)
        with closed_if_it_fails(self._connection):
            self._connection.ask(f"$JS.API.CONSUMER.INFO.{self._group}")

    def receive(self, limit: int, wait: float) -> Incoming | None:
        deadline = Deadline(wait)
        while True:
            if not (self._to_come and self._over_at.left()):
                self._request(limit)
            if found := self._take(min(deadline.left(), self._over_at.left())):
                return self._incoming(found)
            if not deadline.left():
                return None

    @property
    def told_empty(self) -> bool:
        return self._sign_lasts.left() > 0

    def _take(self, wait: float) -> list[Messages]:
        """What is delivered now; whatever else comes says how things stand."""
        frames = list(self._connection.frames(wait))
        found = [frame for frame in frames if isinstance(frame, Messages) and frame.have_replies]
        if found:
            self._held += found
            self._to_come = max(0, self._to_come - sum(map(len, found)))
            self._sign_lasts = Deadline(0)
        for frame in frames:
            if frame not in found:
                self._hear(frame)
        if frames:
            self._answer_by = Deadline(_ANSWER_WITHIN)
        else:
            self._answer_by.check(_BROKE)
        return found

    def _request(self, limit: int) -> None:
        said = {"batch": limit, "expires": int(_STAY * 1e9), "max_bytes": _MOST_BYTES}
        self._requests += 1
        answer = f"{self._connection.inbox}.next.{self._requests}"
        self._connection.wire.send(publish(f"$JS.API.CONSUMER.MSG.NEXT.{self._group}", answer, said))
        if not self._to_come:  # the last one was answered
            self._answer_by = Deadline(_STAY + _ANSWER_WITHIN)
        self._to_come, self._over_at = limit, Deadline(_STAY + _OVER_AFTER)

    def _hear(self, frame: Messages | Status) -> None:
        """Either there is no more for a request, and how the group stands is asked for; or this is how it stands."""
        if isinstance(frame, Messages):
            said = _read_answer(frame)
            empty = said.get("num_pending") == said.get("num_ack_pending") == 0
            self._sign_lasts = Deadline(_SIGN_LASTS if empty else 0)
        elif not frame.text.startswith(_REQUEST_IS_OVER):
            raise ConnectionLost(frame.text, _UNCLEAR)
        elif frame.subject.endswith(b".%d" % self._requests):  # and not one that was thought to be over
            self._to_come = 0
            ask = publish(f"$JS.API.CONSUMER.INFO.{self._group}", f"{self._connection.inbox}.state")
            self._connection.wire.send(ask)

    def _incoming(self, found: list[Messages]) -> Incoming:
        bodies, lengths = stacked([messages.bodies for messages in found])
        with lost_if((BadFrame, LookupError), _NO_NATS):
            numbers = [jetstream.delivered(messages.replies) for messages in found]
            topics = np.concatenate([self._topics.find(messages.subjects) for messages in found])
        mine = topics >= 0  # a consumer of nats-server 2.9 reads one topic or all: others are acknowledged and left out
        return Incoming(
            bodies=bodies[mine],
            lengths=lengths[mine],
            topics=topics[mine],
            positions=np.concatenate([places for _, places in numbers])[mine],
            redelivered=(np.concatenate([counts for counts, _ in numbers]) > 1)[mine],
            token=found,
        )

    def acknowledge(self, incoming: Incoming) -> None:
        self._say(incoming.token, b"+ACK")
        self._held = [messages for messages in self._held if messages not in incoming.token]

    def _say(self, held: list[Messages], said: bytes) -> None:
        for messages in held:
            self._connection.wire.send(jetstream.acknowledgements(messages.replies, said))

    def fileno(self) -> int:
        return self._connection.wire.fileno()

    def close(self) -> None:
        with contextlib.suppress(ConnectionLost):
            self._give_back()
        self._connection.close()

    def _give_back(self) -> None:
        """Only when the last request is over: nats-server 2.9 miscounts if they come back while it is with nobody."""
        deadline = Deadline(_GIVE_BACK_WITHIN)
        while self._to_come and deadline.left():
            self._take(deadline.left())
        self._say(self._held, b"-NAK")
        self._connection.settle(_GIVE_BACK_WITHIN)

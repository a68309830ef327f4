"""Redis Streams over RESP: a topic is a stream, a group a consumer group, an ack the id that XADD answers.

A receiver reads in this order:
1. What its consumer was given and has not acknowledged, from the beginning: after a reconnect, and whenever
   nothing new has come for a while. All of it is flagged as redelivered.
2. What is new. The request stays with the server until something comes.
Whenever nothing new has come for a while, it also adopts what a consumer that is gone has left behind.
"""

import contextlib
from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np

from ackworth.driver.codec.redis_streams import Deliveries, Entries, appends
from ackworth.driver.codec.resp import BadReply, Error, Part, Value, bulk, command, count_strings, parse
from ackworth.driver.contract import (
    Address,
    Answers,
    ConnectionLost,
    Incoming,
    Int64s,
    Outgoing,
    answered,
    closed_if_it_fails,
    joined,
)
from ackworth.driver.matrix import stacked
from ackworth.driver.wire import Deadline, lost_if, reach
from ackworth.model.outcome import Outcome

# Errors with which Redis refuses a command before it does anything.
DEFINITE = {
    "OOM": "out of memory (OOM)",
    "READONLY": "a replica takes no writes (READONLY)",
    "MISCONF": "it cannot persist, and takes no writes (MISCONF)",
    "NOREPLICAS": "too few replicas (NOREPLICAS)",
    "LOADING": "it is loading its data (LOADING)",
    "NOAUTH": "not authenticated (NOAUTH)",
    "NOPERM": "not permitted (NOPERM)",
    "WRONGTYPE": "the topic's key is no stream (WRONGTYPE)",
    "BUSY": "it runs a script, and does nothing else (BUSY)",
    "CLUSTERDOWN": "its cluster is down (CLUSTERDOWN)",
    "MOVED": "the topic is at another node (MOVED)",
}
REASONS = (
    "",
    "no answer in time",
    "the connection broke",
    "an answer that is no RESP",
    "an error that may mean anything",
    *DEFINITE.values(),
)
_BROKE, _NO_RESP, _UNCLEAR = 2, 3, 4
_ACK_BYTES = len("$15\r\n1731716255123-0\r\n")  # the least that an ack takes
_ANSWER_WITHIN = 10.0  # seconds, for what is answered at once
_STAY_MS = 250  # how long a request for new messages stays with the server
_SIGN_LASTS = 1.0  # seconds that it counts that there was nothing new: a server that stalls does not say so again
_ADOPT_AFTER_MS = 10_000  # how long a message may be with a consumer before another takes it


def prepare(address: Address, topics: Sequence[str], groups: Sequence[str]) -> None:
    creates = [command("XGROUP", "CREATE", topic, group, "0", "MKSTREAM") for topic in topics for group in groups]
    with contextlib.closing(_Connection(address)) as connection:
        _check(connection.ask(creates), fine="BUSYGROUP")


def version(address: Address) -> str:
    with contextlib.closing(_Connection(address)) as connection:
        [said] = _check(connection.ask([command("INFO", "server")]))
    if not isinstance(said, bytes):
        raise ConnectionLost("no INFO", _UNCLEAR)
    number = said.partition(b"redis_version:")[2].partition(b"\r")[0]
    return f"Redis {number.decode(errors='replace')}"


def remove(address: Address, topics: Sequence[str], groups: Sequence[str]) -> None:
    with contextlib.closing(_Connection(address)) as connection:
        _check(connection.ask([command("DEL", *topics)]))


def _check(said: list[Value], fine: str = "") -> list[Value]:
    """Raises ConnectionLost if there is an error among them, but for the one that is fine."""
    for answer in said:
        if isinstance(answer, Error) and answer.code != fine:
            raise ConnectionLost(answer.text, _UNCLEAR)
    return said


def _greeting(address: Address) -> list[bytes]:
    """What is to be said before anything else, to a broker that is not our own."""
    said = []
    if (password := address.get("password")) is not None:
        said.append(command("AUTH", *filter(None, [address.get("user")]), password))
    if database := address.get("database"):
        said.append(command("SELECT", str(database)))
    return said


class _Connection:
    """A connection that has answered once."""

    def __init__(self, address: Address) -> None:
        self.wire = reach(address, _BROKE)
        with closed_if_it_fails(self):
            if _check(self.ask([*_greeting(address), command("PING")]))[-1] != b"PONG":
                raise ConnectionLost("no PONG", _UNCLEAR)

    def ask(self, commands: Sequence[bytes]) -> list[Value]:
        """The answers to a few commands. Raises ConnectionLost."""
        self.wire.send(b"".join(commands))
        deadline = Deadline(_ANSWER_WITHIN)
        found: list[Value] = []
        data, at = b"", 0
        while len(found) < len(commands):
            with lost_if(BadReply, _NO_RESP):
                value = parse(data, at)
            if value is not None:
                found.append(value[0])
                at = value[1]
            elif more := self.wire.receive(deadline.left()):
                data, at = data[at:] + more, 0
            else:
                deadline.check(_BROKE)
        return found

    def close(self) -> None:
        self.wire.close()


class Sender:
    def __init__(self, address: Address, topics: Sequence[str], producer: int) -> None:
        self._connection = _Connection(address)
        self._appends = appends(topics)
        self._waiting: deque[range] = deque()  # the seqs that are not answered
        self._data = b""  # the beginning of an answer
        self._open = 0  # messages that are not answered

    def send(self, batch: Outgoing) -> None:
        first = batch.first_seq
        if self._waiting and self._waiting[-1].stop == first:
            first = self._waiting.pop().start
        self._waiting.append(range(first, batch.first_seq + len(batch.sizes)))
        self._connection.wire.send(self._appends.encode(batch.first_seq, batch.topics, batch.bodies, batch.sizes))
        self._count(len(batch.sizes))

    def answers(self, wait: float) -> Answers:
        self._data += self._connection.wire.receive(wait)
        found = joined(self._read())
        self._count(-len(found))
        return found

    def _count(self, more: int) -> None:
        self._open += more
        self._connection.wire.await_half(self._open, _ACK_BYTES)

    def _read(self) -> Iterator[Answers]:
        at = 0
        while True:
            count, at = count_strings(self._data, at)
            yield answered(self._take(count), Outcome.ACKED)
            with lost_if(BadReply, _NO_RESP):
                found = parse(self._data, at)
            if found is None:
                break
            yield answered(self._take(1), *_meaning(found[0]))
            at = found[1]
        self._data = self._data[at:]

    def _take(self, count: int) -> Int64s:
        """The seqs of the oldest messages that are not answered."""
        taken = []
        while count:
            if not self._waiting:
                raise ConnectionLost("more answers than messages", _NO_RESP)
            seqs = self._waiting.popleft()
            if len(seqs) > count:
                self._waiting.appendleft(seqs[count:])
            taken.append(np.arange(seqs.start, seqs[:count].stop))
            count -= len(taken[-1])
        return taken[0] if len(taken) == 1 else np.concatenate([np.empty(0, np.int64), *taken])

    def fileno(self) -> int:
        return self._connection.wire.fileno()

    def close(self) -> None:
        self._connection.close()


def _meaning(said: Value) -> tuple[int, int]:
    """The outcome and its reason."""
    if isinstance(said, bytes):
        return Outcome.ACKED, 0
    if isinstance(said, Error) and said.code in DEFINITE:
        return Outcome.REFUSED, REASONS.index(DEFINITE[said.code])
    return Outcome.UNKNOWN, _UNCLEAR


class Receiver:
    def __init__(self, address: Address, topics: Sequence[str], group: str, consumer: int) -> None:
        self._connection = _Connection(address)
        self._topics = [topic.encode() for topic in topics]
        self._index = {topic: i for i, topic in enumerate(self._topics)}
        self._group, self._name = group.encode(), f"consumer-{consumer}".encode()
        self._left_over = True  # whether what was not acknowledged is asked for, or what is new
        self._coming: Deliveries | None = None  # the answer that is awaited
        self._answer_by = Deadline(0)
        self._sign_lasts = Deadline(0)
        self._data = b""

    @property
    def told_empty(self) -> bool:
        return self._sign_lasts.left() > 0

    def receive(self, limit: int, wait: float) -> Incoming | None:
        deadline = Deadline(wait)
        while True:
            if self._coming is None:
                self._ask(limit)
            answer = self._await(deadline)
            if answer is None:
                return None
            if any(len(entries) for entries in answer.found):
                self._sign_lasts = Deadline(0)
                return self._incoming(answer.found)
            if self._left_over:
                self._acknowledge(answer.found)  # deleted ones would come for ever
                self._left_over = False
            elif answer.timed_out:
                self._adopt(limit)
                self._left_over, self._sign_lasts = True, Deadline(_SIGN_LASTS)

    def _ask(self, limit: int) -> None:
        each = max(1, limit // len(self._topics))
        start: list[Part] = [b"XREADGROUP", b"GROUP", self._group, self._name, b"COUNT", each]
        which: list[Part] = [b"STREAMS"] if self._left_over else [b"BLOCK", _STAY_MS, b"STREAMS"]
        since = [b"0" if self._left_over else b">"] * len(self._topics)
        self._connection.wire.send(command(*start, *which, *self._topics, *since))
        self._coming = Deliveries()
        self._answer_by = Deadline(_STAY_MS / 1000 + _ANSWER_WITHIN)

    def _await(self, deadline: Deadline) -> Deliveries | None:
        """The answer, once all of it is there; None if that is not so in time."""
        assert self._coming is not None
        while not self._coming.done:
            more = self._connection.wire.receive(deadline.left())
            if not more:
                self._answer_by.check(_BROKE)
                return None
            data = self._data + more
            with lost_if(BadReply, _NO_RESP):
                self._data = data[self._coming.take(data) :]
        answer, self._coming = self._coming, None
        if answer.error is not None:
            raise ConnectionLost(answer.error.text, _UNCLEAR)
        return answer

    def _incoming(self, found: list[Entries]) -> Incoming:
        bodies, lengths = stacked([entries.bodies for entries in found])
        counts = [len(entries) for entries in found]
        return Incoming(
            bodies=bodies,
            lengths=lengths,
            topics=np.repeat([self._topic(entries.topic) for entries in found], counts),
            positions=np.concatenate([entries.positions for entries in found]),
            redelivered=np.full(len(lengths), self._left_over),
            token=found,
        )

    def _topic(self, name: bytes) -> int:
        if name not in self._index:
            raise ConnectionLost(f"{name.decode(errors='replace')} is no topic", _NO_RESP)
        return self._index[name]

    def acknowledge(self, incoming: Incoming) -> None:
        self._acknowledge(incoming.token)

    def _acknowledge(self, found: list[Entries]) -> None:
        head = bulk(b"XACK"), bulk(self._group)
        commands = [b"*%d\r\n%b%b%b%b" % (3 + e.ids.count(b"$"), head[0], bulk(e.topic), head[1], e.ids) for e in found]
        _check(self._connection.ask(commands))

    def _adopt(self, limit: int) -> None:
        """Make own what others have been holding for long: it is then among what is left over."""
        start: list[Part] = [self._group, self._name, _ADOPT_AFTER_MS, b"0", b"COUNT", limit, b"JUSTID"]
        _check(self._connection.ask([command(b"XAUTOCLAIM", topic, *start) for topic in self._topics]))

    def fileno(self) -> int:
        return self._connection.wire.fileno()

    def close(self) -> None:
        self._connection.close()

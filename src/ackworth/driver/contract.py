"""What a driver is: a module of this package that speaks one protocol, in batches.

A driver module has

    REASONS     texts of why a message was refused or unknown; REASONS[0] is "", REASONS[1] a time-out
    prepare     creates topics and groups; returns when the broker answers its protocol
    Sender      one producer's connection
    Receiver    one consumer's connection

and, where its protocol does not say of a message that it may have come before, MARKS_REPEATS = False.

Only a definite no of the broker is `refused`: which errors are definite is a table in the driver, and
whatever is not in it is `unknown`. A connection that breaks raises ConnectionLost, with what was answered
before; the worker then counts all else that was in flight as unknown, and connects anew.
"""

import contextlib
import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

import ackworth.driver
from ackworth.model.errors import BadInput

Int64s = npt.NDArray[np.int64]
TIMED_OUT = 1  # REASONS[1]
Address = dict[str, Any]  # how to reach the broker; the broker's file and its driver agree on the keys


class Closable(Protocol):
    def close(self) -> None: ...


@contextlib.contextmanager
def closed_if_it_fails(connection: Closable) -> Iterator[None]:
    """While it is being made ready: nobody else has it yet, who could close it."""
    try:
        yield
    except BaseException:
        connection.close()
        raise


@dataclass(frozen=True)
class Outgoing:
    """Messages with consecutive seqs."""

    first_seq: int
    topics: Int64s  # index of each message's topic
    bodies: npt.NDArray[np.uint8]  # a row each, zeros beyond its size
    sizes: Int64s


@dataclass(frozen=True)
class Answers:
    """What the broker said, in the order in which it said it."""

    seqs: Int64s
    outcomes: npt.NDArray[np.int8]  # model.Outcome
    reasons: npt.NDArray[np.int16]

    def __len__(self) -> int:
        return len(self.seqs)


def answered(seqs: Int64s, outcome: int, reason: int = 0) -> Answers:
    """The same answer for all of them."""
    outcomes, reasons = np.empty(len(seqs), np.int8), np.empty(len(seqs), np.int16)
    outcomes.fill(outcome)
    reasons.fill(reason)
    return Answers(seqs, outcomes, reasons)


NO_ANSWERS = answered(np.empty(0, np.int64), 0)


class ConnectionLost(Exception):
    """The connection is gone: what was in flight is unknown, but for what was answered before."""

    def __init__(self, text: str, reason: int) -> None:
        super().__init__(text)
        self.reason = reason  # an index into REASONS
        self.answers = NO_ANSWERS  # those before it that nobody was told of yet


def joined(parts: Iterable[Answers]) -> Answers:
    """One after the other. A connection that is lost on the way is lost with those before it."""
    found: list[Answers] = []
    try:
        for part in parts:
            found += [part] if len(part) else []
    except ConnectionLost as lost:
        lost.answers = _one(found)
        raise
    return _one(found)


def _one(parts: list[Answers]) -> Answers:
    if len(parts) < 2:
        return parts[0] if parts else NO_ANSWERS
    columns = zip(*((part.seqs, part.outcomes, part.reasons) for part in parts), strict=True)
    return Answers(*(np.concatenate(column) for column in columns))


@dataclass(frozen=True)
class Incoming:
    """Messages as they were received."""

    bodies: npt.NDArray[np.uint8]  # a row each, zeros beyond its length; see load.body
    lengths: Int64s
    topics: Int64s  # index of the topic that each came from
    positions: Int64s  # the broker's place of it in its topic; -1 if it has none
    redelivered: npt.NDArray[np.bool_]
    token: Any  # what the driver needs to acknowledge them

    def __len__(self) -> int:
        return len(self.lengths)


class Sender(Protocol):
    """One producer's connection."""

    def __init__(self, address: Address, topics: Sequence[str], producer: int) -> None: ...

    def send(self, batch: Outgoing) -> None:
        """Hand messages to the broker; their seqs go on where the last batch ended. Raises ConnectionLost."""
        ...

    def answers(self, wait: float) -> Answers:
        """What was answered since; waits at most so many seconds for the first. Raises ConnectionLost."""
        ...

    def close(self) -> None: ...


class Receiver(Protocol):
    """One consumer's connection, reading the topics of its group."""

    def __init__(self, address: Address, topics: Sequence[str], group: str, consumer: int) -> None: ...

    def receive(self, limit: int, wait: float) -> Incoming | None:
        """The next messages; None if none came within so many seconds. Raises ConnectionLost."""
        ...

    def acknowledge(self, incoming: Incoming) -> None:
        """Tell the broker that these are done. Raises ConnectionLost."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Waitable(Protocol):
    """A sender or receiver whose news come through a descriptor: a worker sleeps until it is readable."""

    def fileno(self) -> int: ...


@runtime_checkable
class Answered(Protocol):
    """A receiver to which the broker says, in its own time, that there is nothing.

    Until it has said so, that nothing was received means nothing: the broker may be busy.
    """

    told_empty: bool  # it has said so, and nothing has come since


@runtime_checkable
class Refusing(Protocol):
    """A receiver that can say no to a message, and has it again later, as often as the broker will."""

    def refuse(self, incoming: Incoming, chosen: npt.NDArray[np.bool_]) -> None:
        """The chosen of these are to come again, the others are done. Raises ConnectionLost."""
        ...


class Driver(Protocol):
    """What a driver's module offers."""

    REASONS: tuple[str, ...]
    Sender: type[Sender]
    Receiver: type[Receiver]

    def prepare(self, address: Address, topics: Sequence[str], groups: Sequence[str]) -> None:
        """Make topics and groups that are not there; the groups read these topics.

        Raises ConnectionLost while the broker is not ready.
        """
        ...


@runtime_checkable
class Broadcasting(Driver, Protocol):
    """A driver of a broker that has broadcast."""

    Listener: type[Receiver]  # one client, which gets all that is sent to the topics; its group's name is its own


@runtime_checkable
class Guest(Protocol):
    """A driver that may be sent to a user's own broker: it says what is there, and leaves nothing behind."""

    def version(self, address: Address) -> str:
        """What the broker says of itself. Raises ConnectionLost."""
        ...

    def remove(self, address: Address, topics: Sequence[str], groups: Sequence[str]) -> str | None:
        """Delete all that `prepare` has made for them, as far as it is there, with all that is in it.

        Returns what it must leave there, and why; None if nothing. Raises ConnectionLost.
        """
        ...


def marks_repeats(driver: Driver) -> bool:
    """Whether its protocol says of a message that it may have come before."""
    return bool(getattr(driver, "MARKS_REPEATS", True))


def load(name: str) -> Driver:
    """A driver by its name: a file of this package, or a module's dotted path."""
    known = [
        module.name
        for module in pkgutil.iter_modules(ackworth.driver.__path__)
        if module.name not in ("codec", "contract", "librdkafka", "matrix", "wire")
    ]
    if "." not in name and name not in known:
        raise BadInput(f"unknown driver '{name}': known are {', '.join(known)}")
    module: Any = importlib.import_module(name if "." in name else f"ackworth.driver.{name}")
    found: Driver = module
    return found

"""Brook, the queue inside a database: a library, so a send is answered when it returns.

Which errors are definite is Brook's own word: whatever derives from its `Refused` stored nothing.
"""

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

import numpy as np
import numpy.typing as npt

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
from ackworth.driver.matrix import Matrix, as_matrix, back_to_back, from_equal
from ackworth.driver.wire import Deadline
from ackworth.model.errors import Unavailable
from ackworth.model.outcome import Outcome
from brook import LADDER, Batch, Brook, BrookError, LeaseLost, NoQueue, NotDurable, Piece, Refused, Run

REASONS = ("", "no answer in time", "the database refused it", "the database failed midway")
_REFUSED, _FAILED = 2, 3
# A reader who wants one message of a run reads all of it; Brook asks for about this much.
_RUN_BYTES = 64 * 1024
_ASK_EVERY = 0.1  # seconds between questions whether there is nothing left
_LADDERS = {"ladder": LADDER, "quick": [0.1] * len(LADDER)}


def prepare(address: Address, topics: Sequence[str], groups: Sequence[str]) -> None:
    with _or_lost(), _open(address, "prepare") as queue:
        queue.create_topics(topics)
        for group in groups:
            queue.subscribe(group, topics)


def version(address: Address) -> str:
    """A queue that is there is not a trial's: in the end a trial removes the whole queue."""
    with _or_lost():
        try:
            if not any(file.exists() for file in _files(address)):
                _open({**address, "durability": "off"}, "version", create=False).close()
        except NoQueue as found:
            return f"brook {metadata.version('brook-queue')}, {found.server}"
    raise ConnectionLost("something is there already, and a trial removes its queue: name a place without one", _FAILED)


def remove(address: Address, topics: Sequence[str], groups: Sequence[str]) -> str | None:
    """One that was only half made is made whole first: to open it is to make it."""
    with _or_lost(), _open(address, "remove") as queue:
        if others := queue.topics().keys() - set(topics):
            return f"the queue stays: others have made the topic {min(others)} in it"
        queue.remove()
    for file in _files(address):
        file.unlink(missing_ok=True)
    return None


def _files(address: Address) -> list[Path]:
    """Those of a SQLite database."""
    _, sqlite, path = address["urls"][0].partition("sqlite:///")
    return [Path(f"{path}{end}") for end in ("", "-wal", "-shm", "-door")] if sqlite else []


class Sender:
    def __init__(self, address: Address, topics: Sequence[str], producer: int) -> None:
        self._queue, ids = _enter(address, f"producer-{producer}", producer, topics)
        self._topics = np.array(ids)
        self._answers: list[Answers] = []

    def send(self, batch: Outgoing) -> None:
        seqs = np.arange(batch.first_seq, batch.first_seq + len(batch.sizes))
        with _or_lost():
            try:
                self._queue.append_runs(list(_runs(batch, self._topics[batch.topics])))
            except Refused:
                self._answers.append(answered(seqs, Outcome.REFUSED, _REFUSED))
            else:
                self._answers.append(answered(seqs, Outcome.ACKED))

    def answers(self, wait: float) -> Answers:
        found, self._answers = joined(self._answers), []
        return found

    def close(self) -> None:
        self._queue.close()


class Receiver:
    def __init__(self, address: Address, topics: Sequence[str], group: str, consumer: int) -> None:
        self._queue, ids = _enter(address, f"consumer-{consumer}", consumer, topics)
        self._group = group
        self._index = _index(ids)
        self.told_empty = False
        self._ask_again = Deadline(0)

    def receive(self, limit: int, wait: float) -> Incoming | None:
        with _or_lost():
            batch = self._queue.receive(self._group, max_messages=limit, wait=wait)
            if batch.pieces:
                self.told_empty = False
            elif not self._ask_again.left():
                # Others may have some, or a connection that broke after it had claimed them, until its lease is over.
                self.told_empty = self._queue.lag(self._group) == 0
                self._ask_again = Deadline(_ASK_EVERY)
        return _incoming(batch, self._index)

    def acknowledge(self, incoming: Incoming) -> None:
        with _or_lost(), contextlib.suppress(LeaseLost):  # others have got them, and will say so in their records
            self._queue.ack(incoming.token)

    def refuse(self, incoming: Incoming, chosen: npt.NDArray[np.bool_]) -> None:
        batch: Batch = incoming.token
        with _or_lost(), contextlib.suppress(LeaseLost):
            self._queue.refuse(batch, "refused, as the plan says", list(itertools.compress(batch.messages, chosen)))

    def close(self) -> None:
        self._queue.close()


class Listener:
    """A client of a broadcast, from the first message on. Its progress is in its memory."""

    def __init__(self, address: Address, topics: Sequence[str], group: str, consumer: int) -> None:
        self._queue, ids = _enter(address, f"listener-{consumer}", consumer, topics)
        self._index = _index(ids)
        with _or_lost(), closed_if_it_fails(self._queue):
            self._listener = self._queue.listen(list(topics), start="earliest")

    def receive(self, limit: int, wait: float) -> Incoming | None:
        with _or_lost():
            return _incoming(self._listener.receive(limit, wait), self._index)

    def acknowledge(self, incoming: Incoming) -> None:
        self._listener.done(incoming.token)

    def close(self) -> None:
        self._queue.close()


@contextlib.contextmanager
def _or_lost() -> Iterator[None]:
    """Whatever Brook cannot do is a connection that is lost."""
    try:
        yield
    except BrookError as error:
        raise ConnectionLost(str(error), _FAILED) from error


def _incoming(batch: Batch, index: Int64s) -> Incoming | None:
    if not batch.pieces:
        return None
    counts = np.array([piece.messages for piece in batch.pieces])
    matrix, lengths = _bodies(batch.pieces)
    return Incoming(
        bodies=matrix,
        lengths=lengths,
        topics=np.repeat(index[[piece.topic for piece in batch.pieces]], counts),
        positions=np.concatenate([np.arange(p.first, p.first + p.messages) for p in batch.pieces]),
        redelivered=np.repeat(np.array([piece.attempts > 1 for piece in batch.pieces]), counts),
        token=batch,
    )


def _index(ids: list[int]) -> Int64s:
    """From a topic's id to its place in the list."""
    index = np.full(max(ids) + 1, -1)
    index[ids] = np.arange(len(ids))
    return index


def _open(address: Address, name: str, number: int = 0, *, create: bool = True) -> Brook:
    """Clients begin at one server after the other, by their number."""
    urls = address["urls"]
    try:
        return Brook(
            urls[number % len(urls)],
            durability=address["durability"],
            client=name,
            ladder=_LADDERS[address["retries"]],
            patience=address["patience"],
            create=create,
        )
    except NotDurable as error:
        raise Unavailable(str(error)) from error  # not in a while either


def _enter(address: Address, name: str, number: int, topics: Sequence[str]) -> tuple[Brook, list[int]]:
    """A queue, and the ids that it knows the topics by. Raises ConnectionLost."""
    with _or_lost():
        queue = _open(address, name, number)
        with closed_if_it_fails(queue):
            known = queue.topics()
            if missing := set(topics) - known.keys():
                raise ConnectionLost(f"the topic {min(missing)} is not there, or not there again yet", _FAILED)
            return queue, [known[topic] for topic in topics]


def _runs(batch: Outgoing, topics: Int64s) -> Iterator[Run]:
    """The batch as Brook packs it: the messages of a topic back to back."""
    order = np.argsort(topics, kind="stable")
    topics, sizes = topics[order], batch.sizes[order]
    data = back_to_back(batch.bodies[order], sizes).data
    ends = np.concatenate(([0], np.cumsum(sizes)))
    for first, last in _cuts(topics, int(sizes.max())):
        lengths = sizes[first:last]
        packed = None if (lengths == lengths[0]).all() else lengths.astype("<u4").tobytes()
        yield Run(int(topics[first]), last - first, data[ends[first] : ends[last]], packed)


def _cuts(topics: Int64s, largest: int) -> Iterator[tuple[int, int]]:
    """Where runs begin and end: at each new topic, and before a run becomes too large."""
    changes = [0, *(np.flatnonzero(np.diff(topics)) + 1).tolist(), len(topics)]
    step = max(1, _RUN_BYTES // largest)
    for begin, end in itertools.pairwise(changes):
        for first in range(begin, end, step):
            yield first, min(first + step, end)


def _bodies(pieces: Sequence[Piece]) -> tuple[Matrix, Int64s]:
    sizes = {len(piece.data) // piece.messages if piece.sizes is None else -1 for piece in pieces}
    size = sizes.pop()
    if not sizes and size > 0:
        return from_equal(b"".join(piece.data for piece in pieces), size)
    return as_matrix([body for piece in pieces for body in piece.bodies])

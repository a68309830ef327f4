"""Broadcast: every client gets everything, and keeps for itself how far it has come.

1. Nothing is claimed and nothing acked: a listener reads each topic from its place on. Offsets are dense
   and in the order of commits, so what is before a place that was read has been read; a gap is what
   was deleted, and is passed over.
2. The place moves when the batch is done, so that a client which dies in between gets it again if it
   keeps its progress in a file, and otherwise begins at the end again.
"""

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from brook.archive import RUNS
from brook.errors import BadSetting
from brook.model import Batch, Position
from brook.packing import Piece, cut
from brook.stores.base import Store
from brook.topics import Topics
from brook.workers import FIRST_NAP, LONGEST_NAP, Handler, Workers, log


class Progress:
    """The next offset of each topic, by name, in memory or in a file."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.nexts: dict[str, int] = {}
        if path is not None and path.exists():
            self.nexts = _read(path)

    def save(self) -> None:
        if self._path is None:
            return
        try:
            _write(self._path, json.dumps(self.nexts))
        except OSError as error:
            raise BadSetting(
                f"{self._path}: cannot keep a listener's progress: {error.strerror}: name a file that can be written"
            ) from error


class Listener:
    def __init__(self, store: Store, topics: Topics, names: Sequence[str], progress: Progress, start: Position) -> None:
        self.names = names
        self._store = store
        self._topics = topics
        self._progress = progress
        self._ids = dict(zip(names, topics.ids(names), strict=True))
        self._last = 0  # the topic that the last batch ended with: the next begins with those behind it
        for name, topic in self._ids.items():
            if name in progress.nexts:
                self._require_reached(name, topic)
            else:
                progress.nexts[name] = store.offset_at(topic, start)
        progress.save()  # the latest is another place after a restart

    @property
    def next_offsets(self) -> Mapping[str, int]:
        """How far it has come in each topic."""
        return self._progress.nexts

    def receive(self, max_messages: int = 1000, wait: float = 0.0) -> Batch:
        """What comes next, the same again until it is done; empty if there is nothing."""
        end, nap = time.monotonic() + wait, FIRST_NAP
        while not (batch := self._look(max_messages)) and (left := end - time.monotonic()) > 0:
            time.sleep(min(nap, left))
            nap = min(nap * 2, LONGEST_NAP)
        return batch

    def done(self, batch: Batch) -> None:
        """Go on behind the batch."""
        for piece in batch.pieces:
            self._progress.nexts[self._topics.names[piece.topic]] = piece.first + piece.messages
            self._last = piece.topic
        if batch.pieces:
            self._progress.save()

    def lag(self) -> int:
        """How many messages are still to come."""
        ends = {name: self._store.offset_at(topic, "latest") for name, topic in self._ids.items()}
        return sum(end - self._progress.nexts[name] for name, end in ends.items())

    def _require_reached(self, name: str, topic: int) -> None:
        """Behind the end there is nothing to wait for: what is sent from here on would be skipped."""
        place, end = self._progress.nexts[name], self._store.offset_at(topic, "latest")
        if place > end:
            raise BadSetting(
                f"topic {name!r} ends at {end}, and the listener's progress is {place}: it is of another queue, "
                "or of one that was restored: delete its file to begin anew, or name another"
            )

    def _look(self, limit: int) -> Batch:
        share = -(-limit // len(self._ids))
        pieces: list[Piece] = []
        for name, topic in sorted(self._ids.items(), key=lambda each: (each[1] <= self._last, each[1])):
            found = self._store.scan(topic, self._progress.nexts[name], None, runs=RUNS)
            some = list(_first_messages(found, min(share, limit)))
            limit -= sum(piece.messages for piece in some)
            pieces += some
        return Batch("", None, tuple(pieces), self._topics.names)


class Listening:
    """Calls a handler with what a listener gets, from one thread: in order."""

    def __init__(self, listener: Listener, handler: Handler, batch: int) -> None:
        self.listener = listener
        self._handler = handler
        self._batch = batch
        self._workers = Workers(f"brook-listener-{'-'.join(listener.names)}", 1, self.step)

    def start(self) -> None:
        self._workers.start()

    def tell_to_stop(self) -> None:
        self._workers.tell_to_stop()

    @property
    def is_calling(self) -> bool:
        """Whether it is asked by its handler."""
        return self._workers.is_one_calling

    def stop(self, grace: float = 10.0) -> None:
        self._workers.stop(grace)

    def step(self) -> bool:
        """Handle one batch; False if there was none."""
        batch = self.listener.receive(self._batch)
        if not batch:
            return False
        try:
            self._handler(list(batch.messages))
        except BaseException as error:
            if not (isinstance(error, Exception) or self.is_calling):
                raise  # our thread goes on whatever it was, also after sys.exit()
            log.warning("listener of %s: the handler raised", self.listener.names, exc_info=error)
        self.listener.done(batch)
        return True


def _read(path: Path) -> dict[str, int]:
    with contextlib.suppress(OSError, ValueError, AttributeError, TypeError):
        return {str(name): int(offset) for name, offset in json.loads(path.read_text()).items()}
    raise BadSetting(f"{path}: does not hold a listener's progress: delete it to begin anew, or name another file")


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    new = path.with_name(f"{path.name}.new")
    with new.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def _first_messages(pieces: list[Piece], limit: int) -> Iterator[Piece]:
    for piece in pieces:
        if limit == 0:
            return
        part = cut(piece, piece.first, piece.first + min(limit, piece.messages))
        limit -= part.messages
        yield part

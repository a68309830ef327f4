"""From claims to batches: what a group is handed, what it passes over, and how a batch ends."""

import time
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from brook.errors import LeaseLost
from brook.model import Batch, Claimed, Message
from brook.packing import Piece, pick, tagged
from brook.retrying import behind, refused
from brook.settings import LiveSettings
from brook.sharing import Outcome, Sharing, unless_handed_out
from brook.stores.base import ClaimRequest, Store
from brook.topics import Topics
from brook.workers import FIRST_NAP, LONGEST_NAP


class Wanted(NamedTuple):
    group: str
    topics: Sequence[str] | None  # None: all that the group follows
    max_messages: int
    max_attempts: int | None = None
    is_over: Callable[[], bool] = lambda: False  # nothing is wanted any more
    on_dead: Callable[[int], None] | None = None  # told how many were handed out so often, and are dead


class Receiver:
    def __init__(
        self, store: Store, topics: Topics, settings: LiveSettings, *, client: str, clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._topics = topics
        self.client = client
        self._settings = settings
        self._clock = clock
        self._shared: dict[str, Sharing] = {}  # by group

    def receive(self, wanted: Wanted, wait: float) -> Batch:
        return self._awaited(self._batch(wanted, self._claim(wanted)), wanted, wait)

    def ack(self, batch: Batch) -> None:
        if batch.claimed is not None:
            self._require_held(batch, self._sharing(batch.group).ack(batch.claimed.receipt))

    def ack_and_receive(self, done: Batch, wanted: Wanted, on_lost: Callable[[LeaseLost], None]) -> Batch:
        """Both in one transaction, of the same group. Forbidden: neither was done."""
        outcome = self._claim(wanted, done.claimed and done.claimed.receipt)
        try:
            self._require_held(done, outcome.held)
        except LeaseLost as error:
            on_lost(error)
        return self._awaited(self._batch(wanted, outcome), wanted, wait=0.0)

    def refuse(self, batch: Batch, cause: str, messages: Collection[Message] | None, ladder: Sequence[float]) -> int:
        """How many of the messages are dead now."""
        if batch.claimed is None:
            return 0
        names = [] if messages is None else [message.topic for message in messages]
        ids = dict(zip(names, self._topics.ids(names), strict=True))
        now = self._clock()
        setbacks = refused(
            batch.pieces,
            None if messages is None else {(ids[message.topic], message.offset) for message in messages},
            cause=str(cause),  # handlers like to give the error itself
            ladder=ladder,
            now=now,
            ordered=batch.claimed.ordered,
        )
        self._require_held(batch, self._store.settle(batch.claimed.receipt, setbacks, now, finished=True))
        return sum(setback.range.messages for setback in setbacks if setback.due is None)

    def renew(self, batch: Batch) -> None:
        if batch.claimed is not None:
            until = self._clock() + self._settings.now.lease
            self._require_held(batch, self._store.renew(batch.claimed.receipt, until))

    def beat(self, group: str, threads: int) -> None:
        self._store.beat(self.client, group, threads, self._clock())

    def hand_back(self, batch: Batch) -> None:
        if batch.claimed is not None:
            self._store.renew(batch.claimed.receipt, 0.0)

    def _awaited(self, batch: Batch, wanted: Wanted, wait: float) -> Batch:
        """The batch; or, if nothing of it is left, the next that has something."""
        end, nap = time.monotonic() + wait, FIRST_NAP
        while not batch:
            if batch.claimed is not None:  # all of it was deleted or taken from us, or is to be passed over
                self._sharing(batch.group).ack(batch.claimed.receipt)
            elif (left := end - time.monotonic()) <= 0:
                break
            else:
                time.sleep(min(nap, left))
                nap = min(nap * 2, LONGEST_NAP)
            if wanted.is_over():
                break
            batch = self._batch(wanted, self._claim(wanted))
        return batch

    def _claim(self, wanted: Wanted, done: int | None = None) -> Outcome:
        topics = None if wanted.topics is None else frozenset(self._topics.ids(list(wanted.topics)))
        lease = self._settings.now.lease
        limits = (), wanted.max_attempts, wanted.on_dead
        request = ClaimRequest(wanted.group, topics, wanted.max_messages, self.client, 0.0, lease, *limits)
        return self._sharing(wanted.group).claim(request, done)

    def _sharing(self, group: str) -> Sharing:
        return self._shared.get(group) or self._shared.setdefault(group, Sharing(self._store, self._clock))

    def _batch(self, wanted: Wanted, outcome: Outcome) -> Batch:
        with unless_handed_out(self._store, [outcome.claimed] if outcome.claimed else []):
            return self._made_ready(wanted, outcome.claimed, outcome.pieces)

    def _made_ready(self, wanted: Wanted, claimed: Claimed | None, pieces: Sequence[Piece]) -> Batch:
        if claimed and not pieces:
            self._store.skip_deleted(wanted.group)
        self._topics.require({piece.topic for piece in pieces})
        if claimed and claimed.ordered:
            claimed, pieces = self._let_wait(claimed, pieces)
        if claimed and claimed.tags:
            pieces = [part for piece in pieces for part in tagged(piece, frozenset(claimed.tags))]
        return Batch(wanted.group, claimed, tuple(pieces), self._topics.names)

    def _let_wait(self, claimed: Claimed, pieces: Sequence[Piece]) -> tuple[Claimed, Sequence[Piece]]:
        """Put off those that are behind an earlier message of their key."""
        late = behind(pieces, self._store.waiting_keys(claimed.receipt))
        if not late:
            return claimed, pieces
        self._store.settle(claimed.receipt, late, self._clock(), finished=False)
        places = {(setback.range.topic, setback.range.first) for setback in late}
        left = [
            part
            for p in pieces
            for part in pick(p, [(p.topic, offset) not in places for offset in range(p.first, p.first + p.messages)])
        ]
        return claimed._replace(messages=claimed.messages - len(late)), left

    def _require_held(self, batch: Batch, held: int) -> None:
        if batch.claimed is not None and held < batch.claimed.messages:
            raise LeaseLost(
                f"{batch.claimed.messages - held} of {batch.claimed.messages} messages of group {batch.group!r} "
                f"are this client's no more: acked before, reset, or with others after {self._settings.now.lease} s: "
                "ack once, renew() in time, or open with a longer lease"
            )

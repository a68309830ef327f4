"""Brook: topics, sends, groups, receives and acks, on whichever store the URL names.

A Brook may be used by any number of threads, and any number of processes may open the same database.
It does not survive a fork: open one in each process.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self, get_args

from brook.errors import BadSetting, BrookError, LeaseLost
from brook.group_commit import GroupCommit
from brook.identity import new_client_id
from brook.model import Batch, Durability, MessageId, Outgoing, Start
from brook.packing import Body, Run
from brook.sending import Sender
from brook.stores.base import ClaimRequest, Store
from brook.topics import Topics
from brook.urls import open_store

# How long a waiting receive sleeps between two looks, in seconds.
FIRST_NAP, LONGEST_NAP = 0.0005, 0.02


class Brook:
    def __init__(
        self,
        url: str,
        *,
        durability: Durability = "full",
        client: str | None = None,
        auto_create: bool = True,
        max_body: int = 4 * 1024 * 1024,
        lease: float = 60.0,
        patience: float = 5.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open the queue, and create it if it is not there.

        client: a name to recognise this client by; the host's by default.
        auto_create: sends create the topics that they name; otherwise UnknownTopic.
        max_body: the largest body, in bytes.
        lease: seconds for which a received batch is this client's, unless renewed.
        patience: seconds to wait for a database that others have locked.
        clock: the wall clock, in seconds.
        """
        _require(durability in get_args(Durability), "durability", durability, "full, normal or off")
        _require(max_body > 0, "max_body", max_body, "a number of bytes above 0")
        _require(lease > 0, "lease", lease, "a number of seconds above 0")
        _require(patience >= 0, "patience", patience, "a number of seconds from 0 on")
        self.client = new_client_id(client)
        self._lease = lease
        self._clock = clock
        self._store: Store = open_store(url, durability=durability, patience=patience)
        self._topics = Topics(self._store)
        commit = GroupCommit(lambda runs: self._store.append(runs, clock()))
        self._sender = Sender(commit, self._topics, auto_create=auto_create, max_body=max_body)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hand back what was received and not acked, and close the database."""
        # What cannot be handed back now, others get when the lease is over.
        with contextlib.suppress(BrookError):
            self._store.hand_back(self.client)
        self._store.close()

    # --- topics

    def create_topics(self, names: Iterable[str]) -> list[int]:
        """Create those that are not there yet, all or none; the ids of all."""
        return self._topics.create(list(names))

    def topics(self) -> dict[str, int]:
        """The ids of all topics, by name."""
        return self._store.topics()

    # --- sending

    def send(
        self,
        topic: str,
        body: Body,
        *,
        key: str | None = None,
        tags: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
    ) -> MessageId:
        """Store a message. Once this returns it is there to stay, as durability says."""
        extra = (key, tags, dict(properties or {})) if key is not None or tags or properties else None
        return MessageId(topic, self._sender.one(topic, body, extra))

    def send_many(self, messages: Iterable[Outgoing]) -> list[MessageId]:
        """Store all the messages or none."""
        many = list(messages)
        offsets = self._sender.append([m.topic for m in many], [m.body for m in many], [m.extra for m in many])
        return [MessageId(m.topic, offset) for m, offset in zip(many, offsets, strict=True)]

    def append(self, topics: Sequence[int | str], bodies: Sequence[Body]) -> list[int]:
        """Store all the messages or none: bodies[i] in topics[i], an id or a name; the offset of each."""
        return self._sender.append(topics, bodies)

    def append_runs(self, runs: Sequence[Run]) -> list[int]:
        """Store all the messages or none; the first offset of each run.

        The cheapest way to send: what is packed already is stored as it is. A receiver reads a run whole
        even if it wants one message of it, so let a run be some 64 KiB at most.
        """
        return self._sender.append_runs(runs)

    # --- receiving

    def subscribe(self, group: str, topics: Iterable[str] | None = None, *, start: Start = "earliest") -> None:
        """Let the group follow the topics from their start or end; None: all, also those yet to come.

        Where the group stands in a topic that it follows already does not change.
        """
        _require(start in get_args(Start), "start", start, "earliest or latest")
        _require(bool(group), "group", group, "a name")
        self._store.subscribe(group, None if topics is None else self._topics.ids(list(topics)), start)

    def receive(
        self,
        group: str,
        topics: Iterable[str] | None = None,
        *,
        max_messages: int = 1000,
        wait: float = 0.0,
    ) -> Batch:
        """Messages that are this client's until acked, or until the lease is over; empty if there are none.

        topics: of these alone, instead of all that the group follows.
        wait: seconds to wait for the first message.
        """
        _require(max_messages > 0, "max_messages", max_messages, "a number above 0")
        wanted = None if topics is None else frozenset(self._topics.ids(list(topics)))
        end, nap = time.monotonic() + wait, FIRST_NAP
        while not (batch := self._claim(group, wanted, max_messages)):
            if batch.claimed is not None:  # all of it was deleted before it was read
                self.ack(batch)
            elif (left := end - time.monotonic()) <= 0:
                break
            else:
                time.sleep(min(nap, left))
                nap = min(nap * 2, LONGEST_NAP)
        return batch

    def ack(self, batch: Batch) -> None:
        """The batch is done: its messages never come again to this group."""
        if batch.claimed is not None:
            self._require_held(batch, self._store.ack(batch.claimed.receipt))

    def renew(self, batch: Batch) -> None:
        """Let the batch's lease begin anew."""
        if batch.claimed is not None:
            until = self._clock() + self._lease
            self._require_held(batch, self._store.renew(batch.claimed.receipt, until))

    def lag(self, group: str) -> int:
        """How many messages of its topics the group has not acked; 0: it has read to the end, for now."""
        return self._store.lag(group)

    def _claim(self, group: str, topics: frozenset[int] | None, limit: int) -> Batch:
        request = ClaimRequest(group, topics, limit, self.client, self._clock(), self._lease)
        claimed = self._store.claim(request)
        pieces = tuple(self._store.read(claimed.receipt)) if claimed else ()
        self._topics.require({piece.topic for piece in pieces})
        return Batch(group, claimed, pieces, self._topics.names)

    def _require_held(self, batch: Batch, held: int) -> None:
        if batch.claimed is not None and held < batch.claimed.messages:
            raise LeaseLost(
                f"{batch.claimed.messages - held} of {batch.claimed.messages} messages of group {batch.group!r} "
                f"have gone to others after {self._lease} s: renew() in time, or open with a longer lease"
            )


def _require(right: bool, setting: str, value: object, wanted: str) -> None:
    if not right:
        raise BadSetting(f"{setting}={value!r}: give {wanted}")

"""Brook: topics, sends, groups, receives and acks, on whichever store the URL names.

A Brook may be used by any number of threads, and any number of processes may open the same database.
It does not survive a fork: open one in each process.
"""

import operator
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Self, get_args

from brook.errors import BadMessage, BadSetting, BodyTooLarge, LeaseLost, UnknownTopic
from brook.group_commit import GroupCommit
from brook.identity import new_client_id
from brook.model import Batch, Durability, MessageId, Outgoing, Start
from brook.packing import Body, Run, pack
from brook.stores.base import ClaimRequest, Store
from brook.urls import open_store

MIB = 1024 * 1024


class Brook:
    def __init__(
        self,
        url: str,
        *,
        durability: Durability = "full",
        client: str | None = None,
        auto_create: bool = True,
        max_body: int = 4 * MIB,
        lease: float = 60.0,
        patience: float = 5.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open the queue, and create it if it is not there.

        client: a name for this client, to recognise it by; the host's name by default.
        auto_create: sends create the topics that they name; otherwise UnknownTopic.
        max_body: the largest body, in bytes.
        lease: seconds for which a received batch is this client's, unless renewed.
        patience: seconds to wait for a database that others have locked.
        clock: the wall clock, in seconds.
        """
        _require(durability in get_args(Durability), "durability", durability, "full, normal or off")
        _require(lease > 0, "lease", lease, "a number of seconds above 0")
        _require(patience >= 0, "patience", patience, "a number of seconds, or 0")
        self.client = new_client_id(client)
        self._store: Store = open_store(url, durability=durability, patience=patience)
        self._auto_create = auto_create
        self._max_body = max_body
        self._lease = lease
        self._clock = clock
        self._ids: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._commit = GroupCommit(lambda runs: self._store.append(runs, self._clock()))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hand back what was received and not acked, and close the database."""
        # What cannot be handed back goes to others once the lease is over; closed, there is nothing to.
        with contextlib.suppress(BrookError):
            self._store.hand_back(self.client)
        self._store.close()

    # --- topics

    def create_topics(self, names: Iterable[str]) -> list[int]:
        """Create those that are not there yet, in one transaction; the ids of all."""
        wanted = list(names)
        if not all(wanted):
            raise BadMessage("'': a topic must have a name: give it one")
        if not self._know(wanted):
            self._store.create_topics(wanted)
            self._know(wanted)
        return [self._ids[name] for name in wanted]

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
        """Store a message; it is there to stay, as durability says, once this returns."""
        (sent,) = self.send_many([Outgoing(topic, body, key, tags, properties or {})])
        return sent

    def send_many(self, messages: Iterable[Outgoing]) -> list[MessageId]:
        """Store all the messages or none."""
        many = list(messages)
        offsets = self.append(
            [m.topic for m in many], [m.body for m in many], extras=[m.extra for m in many]
        )
        return [MessageId(m.topic, offset) for m, offset in zip(many, offsets, strict=True)]

    def append(
        self,
        topics: Sequence[int] | Sequence[str],
        bodies: Sequence[Body],
        *,
        extras: Sequence[Extra | None] = (),
    ) -> list[int]:
        """Store all the messages or none: bodies[i] goes to topics[i], an id or a name; their offsets."""
        self._check_bodies(topics, bodies, extras)
        runs, indexes = [], []
        for topic, positions in self._by_topic(topics).items():
            packed = pack(topic, _pick(bodies, positions), _pick(extras, positions) if extras else ())
            runs += packed
            indexes.append((positions, len(packed)))
        firsts = iter(self._commit(runs)) if runs else iter(())
        offsets = [0] * len(bodies)
        for positions, packed_runs in indexes:
            first = next(firsts)
            collections.deque(itertools.islice(firsts, packed_runs - 1), maxlen=0)
            for offset, position in enumerate(positions, first):
                offsets[position] = offset
        return offsets

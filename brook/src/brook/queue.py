"""Brook: topics, sends, groups, receives, acks and handlers, on whichever store the URL names.

A Brook may be used by any number of threads, and any number of processes may open the same database.
It does not survive a fork: open one in each process.
"""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self, get_args

from brook.alerts import Alert, Alerts
from brook.archive import Archive, Search
from brook.broadcast import Listener, Listening, Progress
from brook.consumer import Consumer, Manner
from brook.errors import BadSetting, BrookError
from brook.group_commit import GroupCommit
from brook.identity import new_client_id, short_name
from brook.metrics import metrics_text
from brook.model import Batch, DeadLetter, Durability, Message, MessageId, Outgoing, Position, Rule
from brook.packing import Body, Run
from brook.receiving import Receiver, Wanted
from brook.retention import clean_all
from brook.sending import Packer, Sender
from brook.settings import LiveSettings, Settings, checked
from brook.states import ClientState, GroupState, TopicState, Trace
from brook.stores.base import Store
from brook.topics import Topics
from brook.transaction import Transaction, dbapi_connection
from brook.upkeep import Upkeep
from brook.urls import open_store
from brook.workers import Handler


class Brook:
    def __init__(
        self,
        url: str,
        *,
        durability: Durability = "full",
        client: str | None = None,
        create: bool = True,
        auto_create: bool | None = None,
        max_body: int | None = None,
        lease: float | None = None,
        ladder: Sequence[float] | None = None,
        patience: float = 5.0,
        clock: Callable[[], float] = time.time,
        on_alert: Callable[[Alert], None] | None = None,
    ) -> None:
        """Open the queue, and create it if it is not there.

        client: a name to recognise this client by; the host's by default.
        create: False: BadUrl if it is not there.
        auto_create: sends create the topics that they name; otherwise UnknownTopic.
        max_body: the largest body, in bytes.
        lease: seconds for which a received batch is this client's, unless renewed.
        ladder: seconds to wait before each retry; what fails after the last of them is dead.
        patience: seconds to wait for a database that others have locked.
        clock: the wall clock, in seconds.
        on_alert: called, from any thread, when a handler is slow or timed out, or messages are dead or lost.
        auto_create, max_body, lease and ladder stand in for the queue's settings of these names.
        """
        _require(durability in get_args(Durability), "durability", durability, "full, normal or off")
        given = {"auto_create": auto_create, "max_body": max_body, "lease": lease, "ladder": ladder}
        overrides = {name: checked(name, value) for name, value in given.items() if value is not None}
        _require(patience >= 0, "patience", patience, "a number of seconds from 0 on")
        self.client = new_client_id(client)
        self._clock = clock
        self._consumers: list[Consumer | Listening] = []
        self._store: Store = open_store(url, durability=durability, patience=patience, create=create)
        self._topics = Topics(self._store)
        self._settings = LiveSettings(self._store, overrides, clock)
        self._receiver = Receiver(self._store, self._topics, self._settings, client=self.client, clock=clock)
        self._alerts = Alerts(on_alert, lambda: self.settings.alert_url)
        self._archive = Archive(self._store, self._topics)
        self._upkeep = Upkeep(self._store, self._settings, self.client, clock)
        commit = GroupCommit(
            lambda runs: self._store.append(runs, clock()), short_name(self.client), self._store.appends_at_once
        )
        self._sender = Sender(commit, Packer(self._topics, self._settings))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self, grace: float = 10.0) -> None:
        """Stop the consumers, hand back what was received and not acked, and close the database.

        grace: seconds for the handlers to finish what they have.
        """
        for consumer in self._consumers:
            consumer.tell_to_stop()
        self._upkeep.stop(grace)
        # What cannot be handed back now, others get when the lease is over.
        for consumer in self._consumers:
            with contextlib.suppress(BrookError):
                consumer.stop(grace)
        with contextlib.suppress(BrookError):
            self._store.hand_back(self.client)
        self._alerts.close()
        self._store.close()

    def run(self) -> None:
        """Wait until the process is told to end (SIGINT or SIGTERM); then close() stops the consumers."""
        told = threading.Event()
        before = {number: signal.signal(number, lambda *_: told.set()) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            told.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    # --- topics

    def create_topics(self, names: Iterable[str]) -> list[int]:
        """Create those that are not there yet, all or none; the ids of all."""
        return self._topics.create(list(names))

    def topics(self) -> dict[str, int]:
        """The ids of all topics, by name."""
        return self._store.topics()

    def rules(self) -> dict[str, Rule]:
        """What each topic may be used for, by name."""
        rules = self._store.rules()
        return {name: rules[topic] for name, topic in self.topics().items()}

    def set_rule(self, topic: str, rule: Rule) -> None:
        """Say what the topic may be used for; every call of every process is held to it from here on."""
        _require(rule in get_args(Rule), "rule", rule, ", ".join(get_args(Rule)))
        (topic_id,) = self._topics.ids([topic])
        self._store.set_rule(topic_id, rule)

    # --- settings

    @property
    def settings(self) -> Settings:
        """What holds now; a change by another process is seen within a second."""
        return self._settings.now

    def set(self, name: str, value: object) -> None:
        """Change a setting, for every process that has the queue open; None: back to its default."""
        self._settings.change(name, value)

    # --- retention

    def clean(self, *, keep_seconds: float | None = None, keep_bytes: int | None = None) -> dict[str, int]:
        """Delete what is too old or too much, in small transactions; how many messages of each topic.

        keep_seconds, keep_bytes: of each topic, instead of the settings of these names. Read or not, it goes; but
        what a group has in flight stays, and so does what is among its dead letters.
        """
        given = {"keep_seconds": keep_seconds, "keep_bytes": keep_bytes}
        overrides = {name: checked(name, value) for name, value in given.items() if value is not None}
        return clean_all(self._store, replace(self.settings, **overrides), self._clock())

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
        return self._sender.send(topic, body, key, tags, properties)

    def send_many(self, messages: Iterable[Outgoing]) -> list[MessageId]:
        """Store all the messages or none."""
        return self._sender.send_many(list(messages))

    def append(self, topics: Sequence[int | str], bodies: Sequence[Body]) -> list[int]:
        """Store all the messages or none: bodies[i] in topics[i], an id or a name; the offset of each."""
        return self._sender.append(topics, bodies)

    def append_runs(self, runs: Sequence[Run]) -> list[int]:
        """Store all the messages or none; the first offset of each run.

        The cheapest way to send: what is packed already is stored as it is. A receiver reads a run whole
        even if it wants one message of it, so let a run be some 64 KiB at most.
        """
        return self._sender.append_runs(runs)

    def within(self, connection: object) -> Transaction:
        """Send in a transaction of your own: stored with your rows, or not at all.

        connection: the database connection that has your transaction, a SQLAlchemy Session or Connection, or a
        Django connection; to the same database as the queue.
        """
        writer = self._store.within(dbapi_connection(connection))
        packer = Packer(Topics(writer, self._topics.names), self._settings)
        return Transaction(writer, packer, self._clock, short_name(self.client))

    # --- receiving

    def subscribe(
        self,
        group: str,
        topics: Iterable[str] | None = None,
        *,
        start: Position = "earliest",
        ordered: bool | None = None,
        tags: Iterable[str] | None = None,
    ) -> None:
        """Let the group follow the topics; None: all, also those yet to come, which it gets from their start.

        start: earliest, latest, an offset, or a time (a datetime: what was sent then or later).
        Where the group stands in a topic that it follows already does not change.
        ordered: of a topic one batch is out at a time, and a retried message holds up those of its key.
        tags: messages with none of these are passed over; empty: all are wanted.
        None leaves the group's option as it is; a new group is neither ordered nor choosy.
        """
        _require_position("start", start)
        _require(bool(group), "group", group, "a name")
        ids = None if topics is None else self._topics.ids(list(topics))
        self._store.subscribe(group, ids, start, ordered=ordered, tags=None if tags is None else list(tags))

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
        return self._receiver.receive(Wanted(group, None if topics is None else list(topics), max_messages), wait)

    def ack(self, batch: Batch) -> None:
        """The batch is done: its messages never come again to this group."""
        self._receiver.ack(batch)

    def refuse(self, batch: Batch, cause: str, messages: Collection[Message] | None = None) -> None:
        """Have these messages of the batch again later, as the ladder says; all by default. The others are done."""
        self._receiver.refuse(batch, cause, messages, self.settings.ladder)

    def renew(self, batch: Batch) -> None:
        """Let the batch's lease begin anew."""
        self._receiver.renew(batch)

    def hand_back(self, batch: Batch) -> None:
        """Let others have the batch at once."""
        self._receiver.hand_back(batch)

    def lag(self, group: str) -> int:
        """How many messages of its topics the group is not done with; 0: it has read to the end, for now."""
        return self._store.lag(group)

    def consumer(
        self,
        topics: str | Iterable[str] | None = None,
        *,
        group: str,
        threads: int | None = None,
        batch: int | None = None,
        start: Position = "earliest",
        ordered: bool | None = None,
        tags: Iterable[str] | None = None,
        ladder: Sequence[float] | None = None,
        timeout: float | None = None,
    ) -> Callable[[Handler], Consumer]:
        """Have a function called with the group's messages, a list of them at a time, until close().

        threads: how many call it at once; 0: nobody does but you, by step() and tend().
        timeout: seconds that it may take for a batch before others get it.
        threads, batch, ladder and timeout stand in for the queue's settings of these names.
        topics, start, ordered, tags: as in subscribe().
        """
        given = {"threads": threads, "batch": batch, "ladder": ladder, "timeout": timeout}
        overrides = {name: checked(name, value) for name, value in given.items() if value is not None}
        names = None if topics is None else self._named(topics)
        self.subscribe(group, names, start=start, ordered=ordered, tags=tags)

        def manner() -> Manner:
            now = replace(self.settings, **overrides)
            return Manner(now.batch, now.ladder, now.timeout, now.slow, upkeep=min(now.lease, now.timeout) / 3)

        def begin(handler: Handler) -> Consumer:
            count = replace(self.settings, **overrides).threads
            consumer = Consumer(self._receiver, handler, group, names, count, manner, self._clock, self._alerts)
            self._consumers.append(consumer)
            consumer.start()
            if count:
                self._upkeep.start()
            return consumer

        return begin

    def reset(self, group: str, position: Position, topics: Iterable[str] | None = None) -> None:
        """Let the group go on from there, in all topics that it follows or in these.

        What it has in flight there is taken from it; a later ack of that is a LeaseLost.
        """
        _require_position("position", position)
        self._store.reset(group, None if topics is None else self._topics.ids(list(topics)), position)

    # --- broadcast

    def listen(
        self,
        topics: str | Iterable[str],
        *,
        state: str | Path | None = None,
        start: Position = "latest",
    ) -> Listener:
        """Everything that is sent to the topics, whoever else listens; no claims and no acks.

        state: a file that keeps how far this client has come; without it that is forgotten when it ends.
        start: where to begin in a topic that the file does not know.
        """
        _require_position("start", start)
        names = self._named(topics)
        return Listener(self._store, self._topics, names, Progress(None if state is None else Path(state)), start)

    def listener(
        self,
        topics: str | Iterable[str],
        *,
        batch: int = 10,
        state: str | Path | None = None,
        start: Position = "latest",
    ) -> Callable[[Handler], Listening]:
        """Have a function called with everything that is sent to the topics, in order, until close().

        What it raises is logged and no reason to have the messages again.
        """
        _require(batch > 0, "batch", batch, "a number above 0")

        def begin(handler: Handler) -> Listening:
            listening = Listening(self.listen(topics, state=state, start=start), handler, batch)
            self._consumers.append(listening)
            listening.start()
            return listening

        return begin

    # --- looking

    def get(self, topic: str, offset: int) -> Message | None:
        """The message with this id; None if it is not there (any more)."""
        return self._archive.get(topic, offset)

    def query(
        self,
        topic: str,
        *,
        key: str | None = None,
        tag: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        first: int = 0,
        limit: int = 100,
    ) -> list[Message]:
        """Messages from the offset `first` on, with this key, this tag, sent in this time: the first so many.

        It reads what it looks through: narrow a large topic down by since or first.
        """
        search = Search(key, tag, _seconds(since), _seconds(until))
        return self._archive.query(topic, search, first, limit)

    def tail(self, topic: str, last: int = 10) -> list[Message]:
        """The last messages of the topic."""
        return self._archive.tail(topic, last)

    # --- watching

    def topic_states(self, seconds: float = 60.0) -> list[TopicState]:
        """All topics, the busiest of the last so many seconds first; `recent` counts those."""
        states = self._store.topic_states(self._clock() - seconds)
        return sorted(states, key=lambda state: (-state.recent, -state.sent, state.topic))

    def group_states(self) -> list[GroupState]:
        """How far every group is, in each of its topics."""
        return self._store.group_states()

    def client_states(self) -> list[ClientState]:
        """Who consumes, and what each has in flight."""
        return self._store.client_states()

    def trace(self, topic: str, offset: int) -> Trace:
        """Who sent a message, to whom it was handed out, when, how often, and what came of it."""
        (topic_id,) = self._topics.ids([topic])
        return self._store.trace(topic_id, offset)

    def metrics(self) -> str:
        """For Prometheus."""
        return metrics_text(self._store.topic_states(self._clock()), self.group_states(), self.client_states())

    # --- dead letters

    def dead(self, group: str, limit: int = 1000) -> list[DeadLetter]:
        """Messages that the group has given up on, by topic and offset."""
        deaths = self._store.dead(group, limit)
        self._topics.require({death.range.topic for death in deaths})
        return [
            DeadLetter(
                topic=self._topics.names[each.topic],
                offset=each.first,
                attempts=each.attempts,
                died=died,
                cause=cause,
            )
            for each, died, cause in deaths
        ]

    def replay_dead(self, group: str, letters: Iterable[DeadLetter | MessageId]) -> int:
        """Let the group have them again at once, as if for the first time; how many were there."""
        return self._store.replay_dead(group, self._places(letters), self._clock())

    def drop_dead(self, group: str, letters: Iterable[DeadLetter | MessageId]) -> int:
        """Forget them; how many were there."""
        return self._store.drop_dead(group, self._places(letters))

    def _named(self, topics: str | Iterable[str]) -> list[str]:
        names = [topics] if isinstance(topics, str) else list(topics)
        if self.settings.auto_create:
            self._topics.create(names)
        return names

    def _places(self, letters: Iterable[DeadLetter | MessageId]) -> list[tuple[int, int]]:
        many = list(letters)
        return list(zip(self._topics.ids([m.topic for m in many]), [m.offset for m in many], strict=True))


def _require(right: bool, setting: str, value: object, wanted: str) -> None:
    if not right:
        raise BadSetting(f"{setting}={value!r}: give {wanted}")


def _require_position(setting: str, position: Position) -> None:
    right = position in ("earliest", "latest") or isinstance(position, datetime)
    right = right or (isinstance(position, int) and position >= 0)
    _require(right, setting, position, "earliest, latest, an offset from 0 on, or a datetime")


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()

"""Brook: sends, receives, acks, handlers and listeners, on whichever store the URL names.

A Brook may be used by any number of threads, and any number of processes may open the same database.
It does not survive a fork: open one in each process.
"""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self, get_args

from brook.administration import Administration, require, require_position
from brook.alerts import Alert, Alerts
from brook.attendance import Attendance
from brook.broadcast import Listener, Listening, Progress
from brook.checks import is_number, is_text
from brook.consumer import Consumer, Manner
from brook.errors import BrookError
from brook.group_commit import GroupCommit
from brook.identity import new_client_id, short_name
from brook.model import Batch, Durability, Message, MessageId, Outgoing, Position
from brook.packing import Body, Run
from brook.receiving import Receiver, Wanted
from brook.sending import Packer, Sender
from brook.settings import LiveSettings, checked
from brook.topics import Topics, as_names
from brook.transaction import Transaction, dbapi_connection
from brook.upkeep import Upkeep
from brook.urls import open_store
from brook.workers import Handler


class Brook(Administration):
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
        create: False: NoQueue if it is not there.
        auto_create: sends create the topics that they name; otherwise UnknownTopic.
        max_body: the largest body, in bytes.
        lease: seconds for which a received batch is this client's, unless renewed.
        ladder: seconds to wait before each retry; what fails after the last of them is dead.
        patience: seconds to wait for a database that others have locked.
        clock: the wall clock, in seconds.
        on_alert: called, from any thread, when a handler is slow or timed out, or messages are dead or lost.
        auto_create, max_body, lease and ladder stand in for the queue's settings of these names.
        """
        require(durability in get_args(Durability), "durability", durability, "full, normal or off")
        given = {"auto_create": auto_create, "max_body": max_body, "lease": lease, "ladder": ladder}
        overrides = {name: checked(name, value) for name, value in given.items() if value is not None}
        require(is_number(patience) and patience >= 0, "patience", patience, "a number of seconds from 0 on")
        require(client is None or is_text(client), "client", client, "a name")
        self.client = new_client_id(client)
        store = open_store(url, durability=durability, patience=patience, create=create)
        with contextlib.ExitStack() as unless_opened:
            unless_opened.callback(store.close)
            super().__init__(store, Topics(store), LiveSettings(store, overrides, clock), clock)
            unless_opened.pop_all()
        self._consumers: list[Consumer | Listening] = []
        self._receiver = Receiver(store, self._topics, self._settings, client=self.client, clock=clock)
        self._alerts = Alerts(on_alert, lambda: self.settings.alert_url, store.add_alert)
        self._attendance = Attendance(store, self._topics, self.client, clock)
        self._upkeep = Upkeep(store, self._settings, self.client, clock, self._attendance)
        commit = GroupCommit(lambda runs: store.append(runs, clock()), short_name(self.client))
        self._sender = Sender(commit, Packer(self._topics, self._settings))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self, grace: float = 10.0) -> None:
        """Stop the consumers, hand back what was received and not acked, and close the database.

        grace: seconds for the handlers, all together, to finish what they have.
        A handler may say so too: then it is done behind its back, and the handler's return waited for.
        """
        for consumer in self._consumers:
            consumer.tell_to_stop()
        if any(consumer.is_calling for consumer in self._consumers):
            threading.Thread(target=self.close, args=(grace,), name="brook-close").start()
            return
        end = time.monotonic() + grace
        self._upkeep.stop(grace)
        # What cannot be handed back now, others get when the lease is over.
        for consumer in self._consumers:
            with contextlib.suppress(BrookError):
                consumer.stop(max(end - time.monotonic(), 0.0))
        with contextlib.suppress(BrookError):
            self._store.hand_back(self.client)
        self._alerts.close()
        self._store.close()

    def remove(self) -> None:
        """Delete the queue with all that is in it, and close it. Nobody else may be at work with it."""
        self._upkeep.stop(0)
        self._store.remove()
        self.close()

    def run(self) -> None:
        """Wait until the process is told to end (SIGINT or SIGTERM); then close() stops the consumers."""
        told = threading.Event()
        before = {number: signal.signal(number, lambda *_: told.set()) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            told.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

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

        def packer() -> Packer:
            return Packer(Topics(writer, self._topics.names), self._settings)

        return Transaction(writer, packer, self._clock, short_name(self.client))

    # --- receiving

    def subscribe(
        self,
        group: str,
        topics: str | Iterable[str] | None = None,
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
        require_position("start", start)
        require(is_text(group), "group", group, "a name")
        wanted = None if tags is None else list(tags)
        require(not isinstance(tags, str) and all(map(is_text, wanted or ())), "tags", tags, "a list of words")
        ids = None if topics is None else self._topics.ids(as_names(topics))
        self._store.subscribe(group, ids, start, ordered=ordered, tags=wanted)

    def receive(
        self,
        group: str,
        topics: str | Iterable[str] | None = None,
        *,
        max_messages: int = 1000,
        wait: float = 0.0,
    ) -> Batch:
        """Messages that are this client's until acked, or until the lease is over; empty if there are none.

        topics: of these alone, instead of all that the group follows.
        wait: seconds to wait for the first message.
        """
        require(
            isinstance(max_messages, int) and max_messages > 0, "max_messages", max_messages, "a whole number above 0"
        )
        require(is_number(wait), "wait", wait, "a number of seconds")  # before anything is claimed
        return self._receiver.receive(Wanted(group, None if topics is None else as_names(topics), max_messages), wait)

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
        require_position("start", start)
        names = self._named(topics)
        progress = Progress(None if state is None else Path(state))
        listener = Listener(self._store, self._topics, names, progress, start)
        self._attendance.add(listener)
        self._upkeep.start()
        return listener

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
        require(batch > 0, "batch", batch, "a number above 0")
        listener = self.listen(topics, state=state, start=start)

        def begin(handler: Handler) -> Listening:
            listening = Listening(listener, handler, batch)
            self._consumers.append(listening)
            listening.start()
            return listening

        return begin

    def _named(self, topics: str | Iterable[str]) -> list[str]:
        names = as_names(topics)
        require(bool(names), "topics", topics, "one or more")
        if self.settings.auto_create:
            self._topics.create(names)
        return names

"""Sends inside a transaction of the caller's own: stored with the caller's rows, or not at all.

**The rule.** An offset is handed out under a lock that is held until the transaction which has it has ended
(rule 1 of `brook.stores.base`). So a transaction that takes its place early and commits late has nobody
behind it: no group can skip it, however long it stays open. One that is rolled back gives its place to
the next: no group waits for it. No clock and no time-out has a part in this.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from brook.errors import BadSetting
from brook.group_commit import GroupCommit
from brook.model import MessageId, Outgoing
from brook.packing import Body
from brook.sending import Sender
from brook.settings import LiveSettings
from brook.stores.base import Writer
from brook.topics import Topics


class Transaction:
    """For the thread that has the transaction, until it ends. The ids hold once it is committed."""

    def __init__(
        self, writer: Writer, topics: Topics, settings: LiveSettings, clock: Callable[[], float], process: str
    ) -> None:
        commit = GroupCommit(lambda runs: writer.append(runs, clock()), process)
        self._sender = Sender(commit, topics, settings)

    def send(
        self,
        topic: str,
        body: Body,
        *,
        key: str | None = None,
        tags: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
    ) -> MessageId:
        return self._sender.send(topic, body, key, tags, properties)

    def send_many(self, messages: Iterable[Outgoing]) -> list[MessageId]:
        return self._sender.send_many(list(messages))


def dbapi_connection(connection: Any) -> object:
    """The driver's own connection, of a SQLAlchemy Session or Connection, a Django connection, or itself."""
    if hasattr(connection, "ensure_connection"):  # Django
        if not connection.in_atomic_block:
            raise BadSetting(f"{connection!r}: commits each statement on its own: use transaction.atomic()")
        connection.ensure_connection()
        return connection.connection
    if callable(getattr(connection, "connection", None)):  # a SQLAlchemy Session
        connection = connection.connection()
    pooled: Any = getattr(connection, "connection", None)
    if not hasattr(pooled, "dbapi_connection"):
        return connection
    if not connection.in_transaction():  # a SQLAlchemy Connection, which would not know that it has to commit
        connection.begin()
    return pooled.dbapi_connection

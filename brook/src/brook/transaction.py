"""Sends inside a transaction of the caller's own: stored with the caller's rows, or not at all.

**The rule.** A message has its place in a topic only if everything before it is committed (rule 1 of
`brook.stores.base`). So a transaction that sends early and commits late cannot be skipped by a group, however long it
stays open, and no group waits for one that is rolled back. No clock and no time-out has a part in this. How a database
keeps the rule is said in `brook.stores.sqlite_transaction` and `brook.stores.mysql_inbox`.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from brook.errors import BadSetting
from brook.group_commit import signed
from brook.model import MessageId, Outgoing
from brook.packing import Body
from brook.sending import Packer
from brook.stores.base import Writer


class Transaction:
    """For the thread that has the transaction, until it ends. The ids hold once it is committed.

    Where messages get their offsets after the commit alone (MariaDB), None stands for the ids.
    """

    def __init__(self, writer: Writer, packer: Callable[[], Packer], clock: Callable[[], float], process: str) -> None:
        """packer: makes one that knows what is committed alone."""
        self._writer = writer
        self._packer = packer
        self._clock = clock
        self._process = process

    def send(
        self,
        topic: str,
        body: Body,
        *,
        key: str | None = None,
        tags: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
    ) -> MessageId | None:
        ids = self.send_many([Outgoing(topic, body, key, tags, properties or {})])
        return ids[0] if ids else None

    def send_many(self, messages: Iterable[Outgoing]) -> list[MessageId] | None:
        many = list(messages)
        names = [m.topic for m in many]
        # A new one each time: the caller may have undone a part of the transaction, and topics that it created in it.
        packed = self._packer().pack(names, [m.body for m in many], [m.extra for m in many])
        runs = signed(packed.runs, self._process, [threading.current_thread().name])
        firsts = self._writer.append(runs, self._clock()) if runs else []
        if firsts is None:
            return None
        return [MessageId(name, offset) for name, offset in zip(names, packed.offsets(firsts), strict=True)]


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

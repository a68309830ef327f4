"""The queue in MariaDB or MySQL.

How the rules of `base` are kept: by locks of rows, which InnoDB holds until the transaction has ended. Every select
sees what is committed by then (READ COMMITTED).

- An offset is handed out under the lock of its topic's row, which the commit of the messages lets go (rule 1). Sends to
  other topics, and all receivers, go on meanwhile. Callers' transactions: see `mysql_inbox`.
- Whoever claims for a group, moves it or deletes what it might claim, has the lock of its row (rules 2, 3, 6, 7).
- Whoever ends a claim, renews it or takes it over, has the lock of its receipt's row (rules 3 to 5).
- Adding topics and subscribing groups have a lock in common: no group misses a topic that comes at the same time.
- In a cluster locks are each node's own. There the first to commit wins, and who has changed the same row on another
  node begins anew. What has to exclude each other therefore changes a row in common: that of the topic, of the
  group (`turn` is counted up), or of the claim.
"""

from collections.abc import Sequence

from brook.model import Durability
from brook.packing import Run
from brook.stores.base import Writer
from brook.stores.mysql_database import MysqlDatabase, Target
from brook.stores.mysql_inbox import CallersTransaction, admit
from brook.stores.sql import SqlStore


class MysqlStore(SqlStore):
    def __init__(
        self, target: Target, *, durability: Durability = "full", patience: float = 5.0, create: bool = True
    ) -> None:
        self._server = MysqlDatabase(target, durability=durability, patience=patience, create=create)
        super().__init__(self._server)

    def append(self, runs: Sequence[Run], now: float) -> list[int]:
        self._admit()  # what was committed before is before
        return super().append(runs, now)

    def within(self, connection: object) -> Writer:
        return CallersTransaction(self._server, self, connection, self._server.queue, str(self._server.target))

    def _admit(self) -> None:
        admit(self._server)

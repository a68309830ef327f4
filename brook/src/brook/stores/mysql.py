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

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence

from brook.model import Durability
from brook.packing import Run
from brook.sql import mysql as sql
from brook.stores import claims
from brook.stores.base import Writer
from brook.stores.mysql_append import append, append_at, append_small
from brook.stores.mysql_database import MysqlDatabase, Target
from brook.stores.mysql_inbox import CallersTransaction, admit
from brook.stores.redis_places import Disagreed, RedisPlaces
from brook.stores.session import Session
from brook.stores.sql import SqlStore
from brook.stores.writing import is_small


class MysqlStore(SqlStore):
    def __init__(
        self, target: Target, *, durability: Durability = "full", patience: float = 5.0, create: bool = True
    ) -> None:
        self._server = MysqlDatabase(target, durability=durability, patience=patience, create=create)
        self._places = target.redis and RedisPlaces(*target.redis, self._server.queue)
        super().__init__(self._server)

    def append(self, runs: Sequence[Run], now: float) -> list[int]:
        counts: Counter[int] = Counter()
        for run in runs:
            counts[run.topic] += run.messages
        proposed = self._places.take(counts) if self._places else None
        firsts = self._append_quickly(runs, now, counts, proposed)
        if firsts is None:
            firsts = self._server.write(lambda db: append(db, runs, now))
            self._correct({run.topic: first + run.messages for run, first in zip(runs, firsts, strict=True)})
        return firsts

    def ack(self, receipts: Sequence[int], now: float) -> list[int]:
        """In one round trip, outside of a cluster: nothing of it depends on what the claims still hold."""
        if not receipts:
            return []

        def work(db: Session) -> None:
            for statement, parameters in claims.ending(db, receipts, now):
                db.change(statement, parameters)

        _, (_, *done) = self._server.write_and_tell(work)
        return claims.held_by(receipts, done[claims.COUNTED].found)

    def within(self, connection: object) -> Writer:
        return CallersTransaction(self._server, self, connection)

    def remove(self) -> None:
        if self._places is not None:
            self._places.forget(self.topics().values())
        self._drop(sql.TABLES)

    def close(self) -> None:
        if self._places is not None:
            self._places.close()
        super().close()

    def _append_quickly(
        self, runs: Sequence[Run], now: float, counts: Mapping[int, int], proposed: Mapping[int, int] | None
    ) -> list[int] | None:
        if is_small(runs) and runs[0].extras is None:
            first = append_small(self._server, runs[0], now, proposed[runs[0].topic] if proposed else None)
            return None if first is None else [first]
        if proposed:
            with contextlib.suppress(Disagreed):
                return self._server.write(lambda db: append_at(db, dict(proposed), counts, runs, now))
        return None

    def _correct(self, nexts: Mapping[int, int]) -> None:
        if self._places is not None:
            self._places.correct(nexts)

    def _admit(self) -> None:
        admit(self._server)

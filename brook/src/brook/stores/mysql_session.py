"""Statements in a transaction of MariaDB or MySQL, in as few round trips as can be.

What is only to be done waits until something is asked for, or the transaction ends, and travels with that: an append
takes one round trip if it is small, and else two, BEGIN and the lock of its topics, and all the rest with the COMMIT.

In a cluster each statement of a transaction travels alone. A node that undoes a transaction because of another's goes
on with the statements that came along, each of them committed on its own, and says so only at the end: half of an
append would be stored.

Rows that are added to one table are one statement.
"""

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from brook.errors import BodyTooLarge
from brook.sql import mysql as sql
from brook.stores.session import Parameters, Row, Select

# What waits is sent once it is about this long, in characters.
LONG = 4 * 1024 * 1024


class Outcome(NamedTuple):
    rows: int  # changed
    id: int  # that was given to a row, or told by LAST_INSERT_ID()
    found: Sequence[Row]


class MysqlSession:
    locking = " FOR UPDATE"
    by_key = sql.BY_KEY

    def __init__(self, cursor: Any, longest: int, *, transaction: bool, clustered: bool) -> None:
        """cursor: of PyMySQL. longest: what the server takes in one packet, in bytes."""
        self._cursor = cursor
        self._one_by_one = transaction and clustered
        self._longest = longest
        self._waiting = ["BEGIN"] if transaction else []
        self._length = 0

    def rows(self, statement: str, parameters: Parameters = ()) -> list[Row]:
        self._run(self._text(statement, parameters))
        return list(self._cursor.fetchall())

    def rows_of_each(self, statement: str, many: Iterable[Parameters]) -> list[Row]:
        return list(itertools.chain.from_iterable(self.gather(*[(statement, parameters) for parameters in many])))

    def gather(self, *statements: Select) -> list[list[Row]]:
        if self._one_by_one:
            return [self.rows(*statement) for statement in statements]
        if not statements:
            return []
        before = len(self._waiting)
        self._send(";".join(self._text(statement, parameters) for statement, parameters in statements))
        found = [list(self._cursor.fetchall())]
        while self._cursor.nextset():
            found.append(list(self._cursor.fetchall()))
        return found[before:]

    def count(self, statement: str, parameters: Parameters = ()) -> int:
        self._run(self._text(statement, parameters))
        return int(self._cursor.rowcount)

    def insert(self, statement: str, *many: Parameters) -> list[int]:
        if self._one_by_one:  # the cluster may change the step meanwhile
            return [self._send(self._text(statement, parameters), told=True)[-1].id for parameters in many]
        self._waiting += self._texts(statement, many)
        *_, added, step = self._send(sql.STEP, told=True)
        return [added.id + n * int(step.found[0][0]) for n in range(len(many))]

    def change(self, statement: str, *many: Parameters) -> None:
        for text in self._texts(statement, many):
            if self._length + len(text) > LONG and self._waiting:
                self.flush()
            self._waiting.append(text)
            self._length += len(text)

    def body_ids(self, places: Sequence[int]) -> Sequence[int]:
        return places

    def dropping(self, receipts: Sequence[int]) -> list[Select]:
        return [(sql.drop_receipts(len(receipts)), receipts)]

    def lock_catalogue(self) -> None:
        self.change(sql.LOCK_CATALOGUE, ())

    def lock_groups(self, names: Sequence[str]) -> None:
        self.change(sql.LOCK_GROUP, *[(name,) for name in names])

    def flush(self) -> None:
        """Have done what waits."""
        text = self._waiting.pop()
        self._run(text)

    def commit(self) -> list[Outcome]:
        """What each statement did that went with it."""
        return self._send("COMMIT", told=True)

    def _run(self, text: str) -> None:
        """What waits, and then this, whose result is left."""
        self._send(text)
        while self._cursor.nextset():
            pass

    def _send(self, text: str, *, told: bool = False) -> list[Outcome]:
        """What waits, and then this. Told: what they did; else the result of the last that travelled is left."""
        texts = [*self._waiting, text]
        self._waiting, self._length = [], 0
        done: list[Outcome] = []
        for packet in texts if self._one_by_one else [";".join(texts)]:
            self._execute(packet)
            if told:
                done += self._outcomes()
        return done

    def _outcomes(self) -> Iterator[Outcome]:
        yield self._outcome()
        while self._cursor.nextset():
            yield self._outcome()

    def _outcome(self) -> Outcome:
        return Outcome(self._cursor.rowcount, self._cursor.lastrowid, self._cursor.fetchall())

    def _execute(self, text: str) -> None:
        require_short(len(text), self._longest)
        self._cursor.execute(text)

    def _texts(self, statement: str, many: Sequence[Parameters]) -> list[str]:
        head, values, row = statement.partition(" VALUES ")
        if not (values and many):
            return [self._text(statement, parameters) for parameters in many]
        rows = [self._text(row, parameters) for parameters in many]
        return [f"{head}{values}{','.join(some)}" for some in _by_length(rows, min(LONG, self._longest - len(head)))]

    def _text(self, statement: str, parameters: Parameters) -> str:
        if isinstance(parameters, Mapping):
            values: Any = {name: _plain(value) for name, value in parameters.items()}
        else:
            values = tuple(map(_plain, parameters))
        return str(self._cursor.mogrify(for_driver(statement), values))


def require_short(length: int, longest: int) -> None:
    """BodyTooLarge, if the server does not take a statement of so many bytes: it would end the connection."""
    if length >= longest:
        raise BodyTooLarge(
            f"{length} bytes in one statement: the server takes {longest}: "
            "send less at a time, or set its max_allowed_packet higher"
        )


def _by_length(texts: Sequence[str], longest: int) -> Iterator[list[str]]:
    """In groups that are together about as long as that."""
    some: list[str] = []
    length = 0
    for text in texts:
        if some and length + len(text) > longest:
            yield some
            some, length = [], 0
        some.append(text)
        length += len(text) + 1
    yield some


@functools.lru_cache(maxsize=1000)
def for_driver(statement: str) -> str:
    """With the placeholders that MySQL's drivers take."""
    return re.sub(r":(\w+)", r"%(\1)s", statement).replace("?", "%s")


def _plain(value: Any) -> Any:
    """Whatever holds bytes as bytes: the driver would take it for text."""
    return value if value is None or isinstance(value, int | float | str | bytes) else bytes(value)

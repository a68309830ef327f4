"""What a measurement is.

A measurement is a class in a file of its own in `measure/`, found by being there. It lives four
times, each time knowing only what that place can know:

1. on the driver, `request` says whether there is something to measure, and what its tasks must know
   of earlier findings; measurements of stage 2 see the findings of stage 1;
2. in a task, an instance folds rows and gives partial results by key;
3. in a reduction, `reduce` makes one result of all partials of a key;
4. on the driver, `conclude` writes what was found into the findings.

Partials must add up in any order and however the rows were cut into tasks.
"""

import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ackworth.history.reader import RowGroup
from ackworth.model.result import Account, GroupAccount, TrialResult
from ackworth.pipeline.balance import NAMED
from ackworth.pipeline.compressed import compress, decompress
from ackworth.pipeline.context import Context
from ackworth.pipeline.ids import Int64s, PlaceSet
from ackworth.pipeline.rows import Rows

Key = int
TOTAL: Key = -1  # the key of what is one for the whole trial


@dataclass
class Findings:
    """What is found, as it comes together on the driver."""

    result: TrialResult
    sets: dict[str, list[PlaceSet]] = field(default_factory=dict)  # what -> by group, for later stages
    offenders: dict[str, list[str]] = field(default_factory=dict)  # check -> ids, the first NAMED
    defects: dict[str, int] = field(default_factory=dict)  # what is wrong with the record itself
    failed: dict[str, str] = field(default_factory=dict)  # measurement -> why it has no result
    shared: dict[Any, Any] = field(default_factory=dict)  # what one measurement leaves for another

    @property
    def account(self) -> Account:
        return self.result["account"]

    @property
    def groups(self) -> list[GroupAccount]:
        return self.result["groups"]


@dataclass(frozen=True)
class Request:
    """What the tasks of a measurement must know, and which row groups they must read."""

    knows: Any = None
    wanted: frozenset[tuple[str, str, int, int]] | None = None  # places of row groups; None: all

    def wants(self, group: RowGroup) -> bool:
        return self.wanted is None or group.place in self.wanted


class Measurement:
    """The base of all: override what differs."""

    name: ClassVar[str]
    columns: ClassVar[Mapping[str, Sequence[str]]]  # table -> what it reads of it
    stage: ClassVar[int] = 1
    needs: ClassVar[Sequence[str]] = ()  # measurements whose findings `request` or `conclude` uses

    def __init__(self, context: Context, knows: Any) -> None:
        self.context = context
        self.knows = knows

    @classmethod
    def request(cls, context: Context, findings: Findings, groups: Sequence[RowGroup]) -> Request | None:
        """None if there is nothing to measure: then `conclude` gets no results."""
        return Request()

    @classmethod
    def reads(cls, context: Context) -> Mapping[str, Sequence[str]]:
        return cls.columns

    def fold(self, table: str, rows: Rows) -> None:
        """Add a chunk of rows of one row group; a row group's chunks come one after the other."""
        raise NotImplementedError

    def partials(self) -> Iterable[tuple[Key, Any]]:
        """What was folded: anything that can be pickled, by key."""
        raise NotImplementedError

    @classmethod
    def reduce(cls, context: Context, knows: Any, key: Key, partials: list[Any]) -> Any:
        """All partials of a key made one."""
        raise NotImplementedError

    @classmethod
    def conclude(cls, context: Context, found: Mapping[Key, Any], findings: Findings) -> None:
        raise NotImplementedError


def smallest(names: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The first of the (producer, seq) that are to be named, each once."""
    return sorted(set(names))[:NAMED]


def ids_of(rows: Rows) -> list[tuple[int, int]]:
    return smallest(zip(rows["producer"].tolist(), rows["seq"].tolist(), strict=True))


def names_of(context: Context, places: Sequence[Int64s]) -> list[str]:
    """The first places that are to be named, each once."""
    return context.ids.names(np.unique(np.concatenate(places))[:NAMED]) if places else []


def dumps(value: Any) -> bytes:
    """What travels between machines."""
    return compress(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))


def loads(data: bytes) -> Any:
    return pickle.loads(decompress(data))

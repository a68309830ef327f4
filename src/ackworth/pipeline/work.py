"""The work of judging, apart from who does it: a job, its tasks, its reductions. All pure.

A job is one pass over the record. Its row groups are sorted by time and cut into tasks of equal
weight, so that a task sees a slice of time and its sets of ids stay small and dense. A task folds its
rows into every measurement and gives partials by (measurement, key); a reduction makes one result of
all partials of a key. A measurement that raises fails alone: its error travels like a result.
"""

import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

from ackworth.history.reader import RowGroup
from ackworth.model.errors import BadRecord
from ackworth.pipeline.context import Context
from ackworth.pipeline.measure import measurements
from ackworth.pipeline.measurement import Key, Measurement, Request, dumps, loads
from ackworth.pipeline.rows import read_rows

Task = tuple[RowGroup, ...]

# Values that take a tenth of a second to judge: handing out a task takes half of that.
_WORTH_A_TASK = 1 << 24


class Result(NamedTuple):
    """A partial, or what became of all partials of a key; `value` is pickled."""

    measurement: str
    key: Key
    value: bytes


class Failure(NamedTuple):
    """A measurement raised; or, with no measurement to blame, the record cannot be read."""

    text: str
    record: bool = False


@dataclass(frozen=True)
class Job:
    context: Context
    requests: Mapping[str, Request]  # measurement -> its request
    tasks: tuple[Task, ...] = ()

    def columns(self, group: RowGroup) -> dict[str, Sequence[str]]:
        """What measurements read of a row group, by their names."""
        wanting = [name for name, request in self.requests.items() if request.wants(group)]
        found = {name: measurements()[name].reads(self.context).get(group.table, ()) for name in wanting}
        return {name: columns for name, columns in found.items() if columns}

    def without_tasks(self) -> "Job":
        """What all tasks share."""
        return replace(self, tasks=())


def cut(job: Job, groups: Iterable[RowGroup], parallel: int, most: int) -> Job:
    """The job with its tasks: slices of time, within a task series by series.

    A weight is a number of values to read. No task has more than about `most`; towards the end they get
    smaller, so that workers finish together, but not smaller than what is worth a task while all have work.
    """
    weights = {group.place: (group, weight) for group in groups if (weight := _weight(job, group))}
    by_time = sorted(weights.values(), key=lambda found: (found[0].bounds.get("t", (0, 0)), found[0].place))
    left = sum(weight for _, weight in by_time)
    least = min(_WORTH_A_TASK, -(-left // parallel))
    tasks: list[list[RowGroup]] = []
    room = 0
    for group, weight in by_time:
        if room <= 0:
            tasks.append([])
            room = min(most, max(2 * left // (3 * parallel), least))
        tasks[-1].append(group)
        room, left = room - weight, left - weight
    return replace(job, tasks=tuple(tuple(sorted(task, key=lambda g: g.place)) for task in tasks))


def _weight(job: Job, group: RowGroup) -> int:
    columns = {column for columns in job.columns(group).values() for column in columns}
    varying = [column for column in columns if column not in group.bounds or group.constant(column) is None]
    return group.rows * (bool(columns) + len(varying))


def run_task(job: Job, task: Task) -> Iterator[Result]:
    """Fold the task's rows into every measurement."""
    try:
        yield from _Folding(job).run(task)
    except BadRecord as error:
        yield Result("", 0, dumps(Failure(str(error), record=True)))


def run_reduction(job: Job, measurement: str, key: Key, values: Sequence[bytes]) -> bytes:
    """One result of all partials of a key."""
    partials = [loads(value) for value in values]
    for partial in partials:
        if isinstance(partial, Failure):
            return dumps(partial)
    try:
        kind = measurements()[measurement]
        return dumps(kind.reduce(job.context, job.requests[measurement].knows, key, partials))
    except Exception as error:
        return dumps(failure(error))


def failure(error: Exception) -> Failure:
    """What went wrong, and in which line of ours."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return Failure(f"{type(error).__name__}: {error} ({last.filename.rpartition('/')[2]}:{last.lineno})")


class _Folding:
    """The measurements of a job within one task. One that failed folds no more."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._kinds = {name: kind for name, kind in measurements().items() if name in job.requests}
        self._alive: dict[str, Measurement] = {}
        self._failed: dict[str, Failure] = {}

    def run(self, task: Task) -> Iterator[Result]:
        for name, kind in self._kinds.items():
            with self._blamed_on(name):
                self._alive[name] = kind(self._job.context, self._job.requests[name].knows)
        for group in task:
            self._fold(group)
        for name, folded in list(self._alive.items()):
            with self._blamed_on(name):
                for key, partial in folded.partials():
                    yield Result(name, key, dumps(partial))
        for name, why in self._failed.items():
            yield Result(name, 0, dumps(why))

    def _fold(self, group: RowGroup) -> None:
        readers = {name: columns for name, columns in self._job.columns(group).items() if name in self._alive}
        wanted = list(dict.fromkeys(column for columns in readers.values() for column in columns))
        for rows in read_rows(self._job.context, group, wanted) if wanted else ():
            for name in readers:
                if name in self._alive:
                    try:
                        self._alive[name].fold(group.table, rows)
                    except Exception as error:
                        self._blame(name, error)

    @contextmanager
    def _blamed_on(self, name: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._blame(name, error)

    def _blame(self, name: str, error: Exception) -> None:
        self._failed[name] = failure(error)
        self._alive.pop(name, None)

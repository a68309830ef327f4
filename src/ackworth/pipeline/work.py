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
    tasks: tuple[Task, ...]

    def without_tasks(self) -> "Job":
        """What all tasks share."""
        return replace(self, tasks=())


def cut(groups: Iterable[RowGroup], at_least: int, rows_per_task: int) -> tuple[Task, ...]:
    """Row groups as tasks: slices of time of equal weight, within a task series by series."""
    by_time = sorted(groups, key=lambda g: (g.bounds.get("t", (0, 0)), g.place))
    rows = sum(g.rows for g in by_time)
    share = max(1, min(rows_per_task, -(-rows // at_least)))
    tasks: list[list[RowGroup]] = []
    filled = 0
    for group in by_time:
        if filled >= share * len(tasks):
            tasks.append([])
        tasks[-1].append(group)
        filled += group.rows
    return tuple(tuple(sorted(task, key=lambda g: g.place)) for task in tasks)


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
        columns = {
            name: self._kinds[name].reads(self._job.context).get(group.table, ())
            for name in self._alive
            if self._job.requests[name].wants(group)
        }
        readers = [name for name in columns if columns[name]]
        wanted = list(dict.fromkeys(column for name in readers for column in columns[name]))
        for rows in read_rows(self._job.context, group, wanted) if wanted else ():
            for name in readers:
                if name in self._alive:
                    with self._blamed_on(name):
                        self._alive[name].fold(group.table, rows)

    @contextmanager
    def _blamed_on(self, name: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._failed[name] = failure(error)
            self._alive.pop(name, None)

"""Judging a trial from beginning to end."""

import copy
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from ackworth.history.reader import Record, open_record
from ackworth.model.errors import BadRecord
from ackworth.model.result import Account, Duplicates, GroupAccount, Limit, Series, TrialResult
from ackworth.pipeline.context import Context
from ackworth.pipeline.judge import judge
from ackworth.pipeline.measure import measurements
from ackworth.pipeline.measurement import Findings, Key, Measurement, Request, loads
from ackworth.pipeline.plan import prepare
from ackworth.pipeline.work import Failure, Job, Result, cut, failure

# What is told about long work: what is done, how many tasks of how many are finished.
Progress = Callable[[str, int, int], None]

STAGES = (1, 2)

# A task reads about so many values, so that its memory does not grow with the record; with fewer, workers wait more
# often for the next. Tasks of stage 2 keep rows.
VALUES_PER_TASK = {1: 1 << 28, 2: 1 << 26}


class Engine(Protocol):
    """Who does the work."""

    @property
    def parallel(self) -> int:
        """Tasks at a time."""
        ...

    def run(self, job: Job, progress: Callable[[int, int], None]) -> Sequence[Result]: ...

    def about(self) -> dict[str, Any]:
        """What to say of it in the results."""
        ...


def judge_trial(where: str | Path, engine: Engine, progress: Progress | None = None) -> TrialResult:
    """The result of a trial, from the record in its directory (or URI). Raises BadRecord."""
    begin = time.monotonic()
    record = open_record(where)
    context = prepare(record)
    findings = Findings(_nothing_yet(record))
    for stage in STAGES:
        _Stage(stage, record, context, findings).run(engine, progress or _silent)
    result = judge(context, record.end, findings)
    seconds = time.monotonic() - begin
    events = sum(group.rows for group in record.groups)
    result["judging"] = {
        "seconds": seconds,
        "events": events,
        "events_per_second": events / seconds,
        **engine.about(),
    }
    return result


class _Stage:
    """One pass over the record, for the measurements of one stage."""

    def __init__(self, stage: int, record: Record, context: Context, findings: Findings) -> None:
        self._stage = stage
        self._record = record
        self._context = context
        self._findings = findings
        self._kinds = {name: kind for name, kind in measurements().items() if kind.stage == stage}

    def run(self, engine: Engine, progress: Progress) -> None:
        requests = {name: request for name, kind in self._kinds.items() if (request := self._request(kind))}
        job = cut(Job(self._context, requests), self._record.groups, engine.parallel, VALUES_PER_TASK[self._stage])
        what = ("reading the record", "looking closer")[self._stage - 1]
        results = engine.run(job, lambda done, of: progress(what, done, of)) if job.tasks else []
        found = self._collected(results)
        for kind in self._kinds.values():
            self._attempt(kind, kind.conclude, self._context, found[kind.name], self._findings)

    def _request(self, kind: type[Measurement]) -> Request | None:
        found: Request | None = self._attempt(kind, kind.request, self._context, self._findings, self._record.groups)
        return found

    def _collected(self, results: Sequence[Result]) -> dict[str, dict[Key, Any]]:
        found: defaultdict[str, dict[Key, Any]] = defaultdict(dict)
        for name, key, value in results:
            loaded = loads(value)
            if not isinstance(loaded, Failure):
                found[name][key] = loaded
            elif loaded.record:
                raise BadRecord(loaded.text)
            else:
                self._findings.failed[name] = loaded.text
        return found

    def _attempt(self, kind: type[Measurement], step: Callable[..., Any], *arguments: Any) -> Any:
        """A measurement that raises fails, and those that need it; no other."""
        failed = self._findings.failed
        for needed in kind.needs:
            if needed in failed:
                failed.setdefault(kind.name, f"needs {needed}: {failed[needed]}")
        if kind.name in failed:
            return None
        try:
            return step(*arguments)
        except Exception as error:
            failed[kind.name] = failure(error).text
            return None


def _silent(what: str, done: int, of: int) -> None:
    pass


def _nothing_yet(record: Record) -> TrialResult:
    """A result in which nothing is known."""
    found: dict[str, Any] = dict.fromkeys(GroupAccount.__annotations__)
    found["duplicates"] = dict.fromkeys(Duplicates.__annotations__)
    result = {
        "trial": record.trial.name,
        "case": record.trial.case,
        "cell": record.trial.cell,
        "repeat": record.trial.repeat,
        "account": dict.fromkeys(Account.__annotations__) | {"reasons": {}},
        "groups": [{**copy.deepcopy(found), "name": g.name} for g in record.trial.groups],
        "losses": [],
        "latency": {},
        "throughput": {},
        "faults": [],
        "phases": [],
        "series": {name: [] for name in Series.__annotations__},
        "resources": [],
        "limit": {**dict.fromkeys(Limit.__annotations__), "side": "unknown", "said": ""},
        "notes": list(record.end.notes) if record.end else [],
        "plan": record.trial.plan,
        "broker": record.trial.broker,
        "claims": record.trial.claims.plain(),
    }
    return cast(TrialResult, result)

"""Judging without Spark: the same tasks and reductions, one after the other, in this process."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from ackworth.pipeline.work import Job, Result, run_reduction, run_task


class Inline:
    def __init__(self, parallel: int = 1) -> None:
        self.parallel = parallel

    def run(self, job: Job, progress: Callable[[int, int], None]) -> list[Result]:
        partials: defaultdict[tuple[str, int], list[bytes]] = defaultdict(list)
        for done, task in enumerate(job.tasks, 1):
            for result in run_task(job.without_tasks(), task):
                partials[result.measurement, result.key].append(result.value)
            progress(done, len(job.tasks))
        return [Result(name, key, run_reduction(job, name, key, values)) for (name, key), values in partials.items()]

    def about(self) -> dict[str, Any]:
        return {"spark": None, "master": "inline"}

"""How a job is cut into tasks."""

import pytest

from ackworth.history.reader import RowGroup
from ackworth.pipeline.context import Context
from ackworth.pipeline.ids import Ids
from ackworth.pipeline.measurement import Request
from ackworth.pipeline.work import Job, cut
from ackworth.testing.histories import trial

MILLION = 1_000_000
MOST = 100 * MILLION


def groups(count: int) -> list[RowGroup]:
    """Row groups of 3 million values each, for who reads two columns that vary."""
    bounds = {"producer": (0, 1), "seq": (0, 9)}
    return [RowGroup("", "sent", "0", 0, n, MILLION, {**bounds, "t": (n, n + 1)}) for n in range(count)]


def sizes(count: int, parallel: int) -> list[int]:
    job = cut(Job(Context(trial(), (), Ids((10,))), {"account": Request()}), groups(count), parallel, MOST)
    assert sorted(group.index for task in job.tasks for group in task) == list(range(count))
    return [3 * len(task) for task in job.tasks]


@pytest.mark.parametrize("parallel", [1, 2, 16])
def test_tasks_get_smaller_and_none_is_too_large(parallel: int) -> None:
    found = sizes(400, parallel)
    assert found == sorted(found, reverse=True)
    assert max(found) <= MOST / MILLION + 3
    assert found[-1] <= 18


def test_a_small_job_gives_work_to_all_and_not_more() -> None:
    assert sizes(4, parallel=2) == [6, 6]
    assert sizes(1, parallel=2) == [3]
    assert sizes(0, parallel=2) == []

"""A queue in a directory of its own, with a clock that stands still unless it is moved."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from brook import Brook


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/q.db"


@pytest.fixture
def mq(url: str, clock: Clock) -> Iterator[Brook]:
    with Brook(url, clock=clock, durability="off") as queue:
        yield queue

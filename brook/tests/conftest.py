"""A queue in a database of its own, with a clock that stands still unless it is moved."""

import os
from collections.abc import Iterator
from pathlib import Path

import browser as web
import pytest
from hypothesis import HealthCheck, settings
from servers import MariaDb, Redis, free_ports, mariadb

from brook import Brook

# How long an example takes says more of what else the machine does than of us. In CI they are the same every time.
settings.register_profile(
    "patient",
    deadline=None,
    derandomize=os.environ.get("CI") == "true",
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("patient")

browser = web.browser


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def maria(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDb]:
    """One server for all tests; each makes a database of its own."""
    with mariadb(tmp_path_factory.mktemp("mariadb")) as server:
        yield server


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    """Redis, to hand out places."""
    server = Redis(tmp_path_factory.mktemp("redis"), free_ports(1)[0])
    try:
        server.server.start()
        yield server
    finally:
        server.server.kill()


STORES = ["sqlite", pytest.param("mariadb", marks=pytest.mark.real)]


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a queue that is not there yet, in each kind of database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/q.db"
    maria: MariaDb = request.getfixturevalue("maria")
    return maria.url(maria.new_database())


@pytest.fixture
def mq(url: str, clock: Clock) -> Iterator[Brook]:
    with Brook(url, clock=clock, durability="off") as queue:
        yield queue

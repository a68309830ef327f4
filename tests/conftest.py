"""What tests share. With CI=true nothing may be skipped: a machine that lacks something is a failure."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from ackworth.broker import disk
from ackworth.broker.contract import SINGLE, Broker
from ackworth.broker.process import descendants
from ackworth.broker.redis_streams import BROKER as REDIS_STREAMS
from ackworth.broker.redis_streams import RedisStreams
from ackworth.testing.engine import Inline

# How long an example takes says more of what else the machine does than of us. In CI they are the same every time.
settings.register_profile(
    "patient",
    deadline=None,
    derandomize=os.environ.get("CI") == "true",
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("patient")

# A shell has what it starts in the background ignore SIGINT, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

if TYPE_CHECKING:
    from ackworth.pipeline.session import Session


def lacking(reason: str) -> None:
    """This machine cannot run the test."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must be able to run this: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def own_mounts() -> None:
    """Mounts of one's own: whatever a test leaves mounted goes with the test process."""
    if reason := disk.why_not():
        lacking(reason)
    disk.privately()


@pytest.fixture
def no_process_left() -> Iterator[None]:
    """What the test starts is gone at its end; the browser and the servers of other tests may stay."""
    before = set(descendants(os.getpid()))
    yield
    theirs = {child for pid in before for child in descendants(pid)}  # a browser starts helpers when it likes
    assert set(descendants(os.getpid())) <= before | theirs


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Notes of runs go where no real run looks."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    yield folder


@pytest.fixture(scope="session")
def spark() -> Iterator["Session"]:
    """One local Spark for all tests that judge."""
    from ackworth.pipeline.session import session

    with session("local[2]") as found:
        yield found


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands judge in this process: that Spark finds the same, and how it is started, has tests of its own."""
    monkeypatch.setattr("ackworth.pipeline.session.session", lambda master: contextlib.nullcontext(Inline()))


B = TypeVar("B", bound=Broker)


def had(broker: B, topology: str = SINGLE) -> B:
    """The broker, if this machine has it."""
    if reason := broker.missing(topology):
        lacking(reason)
    return broker


@pytest.fixture
def redis_streams() -> RedisStreams:
    return had(REDIS_STREAMS)

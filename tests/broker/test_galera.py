"""A cluster of three real servers: members come back after a kill, and begin from the furthest after a kill of all."""

import contextlib
import socket
from collections.abc import Iterator

import pytest

from ackworth.broker import mariadb, registry
from ackworth.broker.brook_mariadb import BROKER, GALERA
from ackworth.broker.contract import Place
from ackworth.broker.galera import Cluster, Member
from ackworth.broker.ports import HOST, Ports
from ackworth.broker.process import wait_until
from ackworth.fault.kill import FAULT as KILL
from ackworth.model.errors import BrokerFailed
from brook import Brook
from tests.conftest import had


class Three:
    def __init__(self, members: list[Member], url: str) -> None:
        self.members, self.url = members, url

    def start(self, *members: Member) -> None:
        for member in members or self.members:
            member.start()
        wait_until(self._all_joined, 150, "all members take part")

    def _all_joined(self) -> bool:
        for member in self.members:
            member.look()
        return all(member.joined() for member in self.members)

    def kill(self, *members: Member) -> None:
        for member in members or self.members:
            KILL.strike(member, None)

    def bodies(self) -> list[bytes]:
        with Brook(self.url) as queue:
            return [message.body for message in queue.query("t", limit=100)]


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Three]:
    had(BROKER, GALERA)
    folder = tmp_path_factory.mktemp("galera")
    (folder / "logs").mkdir()
    with Ports() as ports, contextlib.ExitStack() as stack:
        places = {}
        for name in BROKER.nodes(GALERA):
            reserved = {port: ports.reserve() for port in BROKER.ports}
            places[name] = Place(data=folder / name, logs=folder / "logs", ports=reserved)
            places[name].data.mkdir()
        settings = registry.settle(BROKER, {})
        members = [node for node in BROKER.build(places, settings) if isinstance(node, Member)]
        for member in members:
            stack.callback(member.stop)
            stack.callback(KILL.strike, member, None)
        found = Three(members, BROKER.address(places, settings)["urls"][0])
        found.start()
        yield found


@pytest.mark.real
def test_after_a_kill_of_all_the_furthest_begins(three: Three) -> None:
    first, *others = three.members
    with Brook(three.url) as queue:
        queue.send("t", b"with all")
        three.kill(first)
        queue.send("t", b"without the first")
    three.kill(*others)
    three.start()
    assert three.bodies() == [b"with all", b"without the first"]


class Known(Member):
    """One that knows how far it is, and notes who begins."""

    def __init__(self, at: str | None, cluster: Cluster, begun: list[str | None]) -> None:
        self._at, self._begun, self._cluster = at, begun, cluster
        cluster.members.append(self)

    has_joined_before = True  # type: ignore[assignment]

    def position(self) -> str | None:
        return self._at

    def processes(self) -> list[int]:
        return [1] if self._at in self._begun else []

    def begin(self, position: str) -> None:
        self._begun.append(position)

    def join(self) -> None:
        self._begun.append(self._at)


def test_whoever_is_started_first_the_furthest_begins_and_the_rest_joins() -> None:
    cluster, begun = Cluster(), list[str | None]()
    members = [Known(at, cluster, begun) for at in ("c:9", None, "c:10", "c:8")]
    for member in members:
        member.start()
    assert begun == ["c:10", "c:9", None, "c:8"]


def test_if_none_can_tell_how_far_it_was_none_begins() -> None:
    cluster = Cluster()
    member = Known(None, cluster, ["somebody else"])
    with pytest.raises(BrokerFailed, match="no member of the cluster can tell"):
        member.start()


def test_a_member_that_takes_a_connection_and_never_answers_has_not_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mariadb, "ANSWERS_WITHIN", 0.2)
    member = Known(None, Cluster(), [])
    with socket.create_server((HOST, 0)) as silent:
        member._port = silent.getsockname()[1]
        assert not member.joined()

"""Truncating deletes what is stored and nothing else; a node that has no table says so."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ackworth.broker.brook_sqlite import FILE, DatabaseFile
from ackworth.broker.contract import Node
from ackworth.broker.mariadb import MariaDb
from ackworth.broker.server import Server
from ackworth.fault.truncate import FAULT
from ackworth.model.errors import BrokerFailed, Unavailable
from brook import Brook


def test_what_is_stored_is_gone_and_the_queue_goes_on(tmp_path: Path) -> None:
    with Brook(f"sqlite:///{tmp_path / FILE}") as queue:
        queue.append(["t"] * 5, [b"old"] * 5)
        queue.subscribe("g")
        FAULT.strike(DatabaseFile("database", tmp_path), None)()
        assert queue.query("t") == []
        assert queue.send("t", b"new").offset == 5
        received = [body for _ in range(2) for body in queue.receive("g").bodies]  # the first may hold the gap alone
        assert received == [b"new"]


def test_a_node_without_a_table(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="node server has no table of messages to truncate"):
        FAULT.strike(Server("server", ["true"], tmp_path / "log"), None)


@pytest.mark.parametrize(
    "node_in",
    [
        lambda folder: DatabaseFile("database", folder),  # no queue in it
        lambda folder: MariaDb("database", [], folder / "data", folder / "log", port=1),  # nobody listens there
    ],
)
def test_a_database_that_does_not_let_it_is_a_broker_that_failed(
    tmp_path: Path, node_in: Callable[[Path], Node]
) -> None:
    with pytest.raises(BrokerFailed, match="node database does not let its messages be deleted"):
        FAULT.strike(node_in(tmp_path), None)

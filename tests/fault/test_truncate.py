"""Truncating deletes what is stored and nothing else; a node that has no table says so."""

from pathlib import Path

import pytest

from ackworth.broker.brook_sqlite import FILE, DatabaseFile
from ackworth.broker.server import Server
from ackworth.fault.truncate import FAULT
from ackworth.model.errors import Unavailable
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

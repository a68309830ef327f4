"""Brook on MariaDB as a broker: what the server is told, what it claims, and what an operator can do to it."""

import itertools
from pathlib import Path

import pymysql
import pytest

from ackworth.broker.brook_mariadb import BROKER, DATABASE
from ackworth.broker.contract import Installable, Truncatable
from ackworth.broker.registry import levels
from ackworth.driver import brook as driver
from ackworth.driver.contract import Address
from ackworth.testing.drivers import check_driver
from ackworth.testing.nodes import Running, running
from brook import Brook
from tests.conftest import had


@pytest.mark.parametrize(
    ("durability", "survives"), [("full", {"kill", "power-cut"}), ("normal", {"kill"}), ("off", set())]
)
def test_each_durability_claims_less(durability: str, survives: set[str]) -> None:
    claims = BROKER.claims({"durability": durability}).survives
    assert claims == survives | {"sigterm", "pause"}


def test_one_that_is_missing_says_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ackworth.broker.server.find_program", lambda name: None)
    assert BROKER.missing() == "mariadbd is not installed: run `ackworth brokers install brook-mariadb`"
    assert isinstance(BROKER, Installable)


def test_each_topology_needs_what_its_nodes_are(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = {"redis-server", "rsync"}
    monkeypatch.setattr("ackworth.broker.server.find_program", lambda name: None if name in missing else name)
    assert BROKER.missing() is None
    assert str(BROKER.missing("with-redis")).startswith("redis-server is not installed")
    assert str(BROKER.missing("galera")).startswith("rsync is not installed")
    assert [len(BROKER.nodes(topology)) for topology in BROKER.topologies] == [1, 2, 3]


def test_a_cluster_also_survives_what_strikes_some_of_its_nodes() -> None:
    cluster, single = (BROKER.claims({"durability": "off"}, topology) for topology in ("galera", "single"))
    assert cluster.survives == single.survives
    assert cluster.covers("power-cut", whole=False) and not cluster.covers("power-cut", whole=True)
    assert not single.covers("kill", whole=False)


def asked(found: Running, statement: str) -> list[tuple[object, ...]]:
    port = found.place.ports["client"]
    connection = pymysql.connect(host="127.0.0.1", port=port, user="root", database=DATABASE, autocommit=True)
    with connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


@pytest.mark.real
def test_it_keeps_every_promise_and_what_it_was_told(tmp_path: Path) -> None:
    """One server for all of it: making its directory takes seconds."""
    with running(had(BROKER), tmp_path, durability="normal", retries="quick") as found:
        assert asked(found, "SELECT @@innodb_flush_log_at_trx_commit, @@bind_address") == [(2, "127.0.0.1")]
        numbers = itertools.count()

        def fresh() -> Address:
            database = f"fresh{next(numbers)}"
            asked(found, f"CREATE DATABASE {database}")
            return {**found.address, "urls": [found.address["urls"][0].replace(f"/{DATABASE}", f"/{database}")]}

        check_driver(driver, fresh)


@pytest.mark.real
def test_stored_messages_can_be_deleted_and_the_rest_stays(tmp_path: Path) -> None:
    with running(had(BROKER), tmp_path) as found:
        with Brook(found.address["urls"][0]) as queue:
            queue.send("orders", b"gone")
            assert isinstance(found.node, Truncatable)
            found.node.truncate()
            assert queue.send("orders", b"kept").offset == 1
            assert [message.body for message in queue.query("orders")] == [b"kept"]
        found.node.stop()
        found.node.start()
        found.wait_until_ready()
        with Brook(found.address["urls"][0]) as queue:
            assert [message.body for message in queue.query("orders")] == [b"kept"]


def test_a_price_list_has_a_row_for_each_durability_and_for_nothing_else() -> None:
    assert levels(BROKER) == [{"durability": "full"}, {"durability": "normal"}, {"durability": "off"}]

"""A user's own places for Brook: a file, a MariaDB with a password and TLS, and with Redis to hand out places."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest
import redis

from ackworth.broker.brook_mariadb import BROKER, redis_command
from ackworth.broker.brook_sqlite import BROKER as SQLITE
from ackworth.broker.contract import Place
from ackworth.broker.ports import HOST
from ackworth.broker.server import Server
from ackworth.model.errors import BadInput
from ackworth.run.attached import attach
from brook import Brook
from tests.run.attached.certificates import Certificates
from tests.run.attached.suite import NOBODY, SECRET, WRITTEN, Suite, Theirs, theirs_of, wait_until_up

pytestmark = pytest.mark.real
DATABASE = "shop"


def secured(theirs: Theirs, place: Place) -> None:
    certificates = theirs.certificates
    assert isinstance(theirs.node, Server)
    theirs.node._command += [
        f"--ssl-ca={certificates.authority}",
        f"--ssl-cert={certificates.server}",
        f"--ssl-key={certificates.server_key}",
    ]
    (place.logs / "mariadb.sql").write_text(
        f"CREATE DATABASE IF NOT EXISTS {DATABASE};\n"
        f"CREATE USER IF NOT EXISTS 'ann' IDENTIFIED BY '{SECRET}';\n"
        f"GRANT ALL ON {DATABASE}.* TO 'ann';\n"
    )


def left(theirs: Theirs) -> set[str]:
    address = {"host": HOST, "port": theirs.ports["client"], "user": "root", "database": DATABASE}
    with contextlib.closing(pymysql.connect(**address)) as database, database.cursor() as cursor:
        cursor.execute("SHOW TABLES")
        tables = {str(name) for (name,) in cursor.fetchall()}
    with redis.Redis(HOST, theirs.ports["redis"]) as places:
        return tables | {key.decode() for key in places.scan_iter()}


@pytest.fixture(scope="module")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theirs]:
    folder = tmp_path_factory.mktemp("mariadb")
    with theirs_of(BROKER, folder, secured, "redis") as found:
        places = Server("redis", redis_command(folder, found.ports["redis"]), folder / "redis.log")
        places.start()
        plain, tls = f"{HOST}:{found.ports['client']}/{DATABASE}", f"localhost:{found.ports['client']}/{DATABASE}"
        trusted = found.certificates.trusted
        found.links = {
            "redis": f"mysql://ann:{WRITTEN}@{plain}?redis={HOST}:{found.ports['redis']}",
            "plain": f"mysql://ann:{WRITTEN}@{plain}",
            "tls": f"mysqls://ann:{WRITTEN}@{tls}?{trusted}",
        }
        found.wrong = {
            "password": (f"mysql://ann:wr0ng@{plain}", "Access denied for user 'ann'"),
            "database": (f"mysql://ann:{WRITTEN}@{plain}s", "shops"),
            "port": (f"mysql://ann:{WRITTEN}@{NOBODY}/{DATABASE}", "Connection refused"),
            "authority": (f"mysqls://ann:{WRITTEN}@{tls}", "certificate verify failed"),
        }
        wait_until_up(found, found.links["plain"])
        found.left = lambda: left(found)
        try:
            yield found
        finally:
            places.stop()


class TestMariaDb(Suite):
    links = ("plain", "tls")
    wrong = ("password", "database", "port", "authority")
    version = "brook .*, MariaDB 1"

    @pytest.fixture
    def theirs(self, mariadb: Theirs) -> Theirs:
        return mariadb

    def test_a_queue_of_their_own_is_not_touched(self, mariadb: Theirs) -> None:
        url = mariadb.links["plain"]
        with Brook(url) as queue:
            queue.create_topics(["orders"])
            with pytest.raises(BadInput, match="something is there already"):
                attach(url, [])
            assert queue.topics().keys() == {"orders"}
            queue.remove()


class TestSqlite(Suite):
    links = ("plain",)
    wrong = ("taken", "folder", "nothing")
    version = "brook .*, SQLite 3"

    @pytest.fixture
    def theirs(self, tmp_path: Path) -> Theirs:
        folder, taken = tmp_path / "theirs", tmp_path / "taken.db"
        folder.mkdir()
        taken.write_text("their own")
        node = SQLITE.node("database", Place(data=folder, logs=folder), {})
        found = Theirs(SQLITE.name, node, {}, Certificates(tmp_path))
        found.links = {"plain": f"sqlite:///{folder}/queue.db"}
        found.wrong = {
            "taken": (f"sqlite:///{taken}", "something is there already"),
            "folder": (f"sqlite:///{folder}/none/queue.db", f"there is no directory {folder}/none"),
            "nothing": ("sqlite:///", "names no file"),
        }
        found.left = lambda: {path.name for path in folder.iterdir()}
        return found

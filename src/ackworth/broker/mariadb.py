"""A server of MariaDB with a queue of Brook's, in a directory of its own, which the first start makes.

Whatever of that a power cut takes away, the next start makes again.
"""

import contextlib
import functools
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ackworth.broker.brook_sqlite import MESSAGE_TABLES
from ackworth.broker.ports import HOST
from ackworth.broker.server import Server, find_program
from ackworth.model.errors import BrokerFailed
from ackworth.model.files import cache

DATABASE = "brook"
PROGRAMS = ("mariadbd", "mariadb-install-db")
_ROLLED_BACK = 1213  # because of others
ANSWERS_WITHIN = 5.0  # seconds
DELETED_WITHIN = 600.0  # seconds, for every message that is stored
# An empty database takes seconds to make, and is always the same: it is made once, and copied. A directory that was not
# made to its end is made anew.
_SCRIPT = """
data=$1 made=$1/made empty=$2; shift 2
if [ ! -e "$empty" ]; then
    mariadb-install-db --no-defaults --user="$(id -un)" --datadir="$empty.$$" --skip-test-db \
        --auth-root-authentication-method=normal --innodb-log-file-size=32M || exit 1
    mv -T "$empty.$$" "$empty" || rm -rf "$empty.$$"  # another run may have been faster
fi
if [ ! -e "$made" ]; then
    rm -rf "$data"/* && cp -r --sparse=always "$empty"/. "$data" && sync -f "$data" && touch "$made" || exit 1
fi
exec "$@"
"""


class MariaDb(Server):
    """The node."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        data: Path,
        log: Path,
        port: int,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        temporary = data.parent / "tmp"
        # Not in a directory that is others' too: a server that starts removes what is left there, whoever left it.
        super().__init__(name, command, log, {"TMPDIR": str(temporary), **(environment or {})})
        self.data = data
        self._port = port
        for folder in (data, temporary):
            folder.mkdir(exist_ok=True)

    def start(self) -> None:
        self._launch(self._making(self._command))

    def _making(self, command: Sequence[str]) -> list[str]:
        empty = cache() / f"mariadb-{version()}"
        empty.parent.mkdir(parents=True, exist_ok=True)
        return ["sh", "-c", _SCRIPT, "sh", str(self.data), str(empty), *command]

    @contextlib.contextmanager
    def asked(self, database: str | None = None, within: float = DELETED_WITHIN) -> Iterator[Any]:
        """A cursor in a transaction, which is committed at the end. Who gets no answer in time does not wait on."""
        import pymysql

        connection = pymysql.connect(
            host=HOST,
            port=self._port,
            user="root",
            database=database,
            connect_timeout=ANSWERS_WITHIN,
            read_timeout=within,
            write_timeout=within,
            ssl_disabled=True,
        )
        with contextlib.closing(connection), connection.cursor() as cursor:
            yield cursor
            connection.commit()

    def truncate(self) -> None:
        """Begun anew as often as others get in its way. Raises BrokerFailed."""
        import pymysql

        while True:
            try:
                with self.asked(DATABASE) as cursor:
                    for table in MESSAGE_TABLES:
                        cursor.execute(f"DELETE FROM {table}")
                return
            except pymysql.Error as error:
                if error.args[0] != _ROLLED_BACK:
                    raise BrokerFailed(f"node {self.name} does not let its messages be deleted: {error}") from error


@functools.cache  # a node that starts again after a fault is waited for
def version() -> str:
    """'10.11.6' from 'mariadbd  Ver 10.11.6-MariaDB-0+deb12u1 for …'."""
    program = find_program("mariadbd") or "mariadbd"
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    return said.partition("Ver ")[2].partition("-")[0]


def command(data: Path, port: int, flush: int) -> list[str]:
    """Flush: its innodb_flush_log_at_trx_commit."""
    return [
        find_program("mariadbd") or "mariadbd",
        "--no-defaults",
        f"--datadir={data}",
        f"--bind-address={HOST}",
        f"--port={port}",
        "--socket=socket",  # in its directory, whose own path may be longer than a socket's name may be
        f"--pid-file={data}/pid",
        f"--innodb-flush-log-at-trx-commit={flush}",
        # Else its log bypasses the kernel, and a cut of the power would not take what was never synced.
        "--innodb-log-file-buffering=ON",
        "--innodb-log-file-size=32M",
        "--innodb-buffer-pool-size=256M",
        "--max-connections=500",
        "--skip-name-resolve",
        "--skip-log-bin",
        "--user=root",
    ]

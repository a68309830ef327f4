"""RabbitMQ: one node with durable queues of one kind: classic of version 1 or 2, or quorum.

The node is the Erlang machine itself, not the script around it, so that it dies with the run. The port mapper
that Erlang nodes find each other by (epmd) usually becomes a daemon that outlives everything: here it is a child
of the node, on a port of its own, and ends with it. Nothing of the system's RabbitMQ is read or written.

Every kind claims the same: RabbitMQ confirms a persistent message when it is on the disk of a durable queue, and
at a quorum queue when a majority has it on theirs; it makes no exception for a power cut.
"""

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ackworth.broker import debian, urls
from ackworth.broker.contract import SINGLE, OneByOne, Place, Setting
from ackworth.broker.ports import HOST
from ackworth.broker.server import Server, not_installed
from ackworth.model.verdict import Claims

PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")  # the one in PATH becomes another user
_QUEUES: dict[str, dict[str, str | int]] = {
    "quorum": {"x-queue-type": "quorum"},
    "classic-v1": {"x-queue-type": "classic", "x-queue-version": 1},
    "classic-v2": {"x-queue-type": "classic", "x-queue-version": 2},
}
# The node takes the shell's place, and so its death with the run. It needs the port mapper to begin.
_SCRIPT = """
setpriv --pdeathsig KILL epmd -address "$1" -port "$ERL_EPMD_PORT" &
until epmd -names > /dev/null 2>&1; do kill -0 $! || exit 1; sleep 0.01; done
exec "$2"
"""


class RabbitMQ(OneByOne):
    name = "rabbitmq"
    summary = "RabbitMQ with a durable queue for each topic and group"
    driver = "amqp"
    embedded = False
    topologies = (SINGLE,)
    ports = ("client", "epmd", "distribution")
    schemes: Mapping[str, int] = {"amqp": 5672, "amqps": 5671}
    settings: Mapping[str, Setting] = {
        "queue": Setting(
            means="the kind of the queues: replicated (here on one node), or classic with its old or its new files",
            values=tuple(_QUEUES),
            default="quorum",
        ),
    }
    overhead = 200.0  # a message is stored with its routing, its properties and an entry in an index
    growth = 3.0  # a quorum queue has it in the log and in a segment; files are removed as a whole

    def missing(self, topology: str = SINGLE) -> str | None:
        return not_installed(self.name, PROGRAM)

    def install(self) -> str:
        return debian.install(package="rabbitmq-server", service="rabbitmq-server")

    def version(self) -> str:
        """'RabbitMQ 3.10.8' from '…/rabbitmq_server-3.10.8/sbin/rabbitmq-server', where the link leads."""
        return f"RabbitMQ {PROGRAM.resolve().parents[1].name.partition('-')[2]}"

    def claims(self, settings: Mapping[str, Any], topology: str = SINGLE) -> Claims:
        return Claims(
            survives=frozenset({"sigterm", "kill", "pause", "power-cut"}),
            ordered=True,
            once=True,
            source="RabbitMQ documentation, 'Consumer Acknowledgements and Publisher Confirms' and 'Quorum Queues'",
        )

    def nodes(self, topology: str) -> Sequence[str]:
        return ("rabbit",)

    def node(self, name: str, place: Place, settings: Mapping[str, Any]) -> Server:
        file = place.logs / f"{name}.conf"
        file.write_text(configuration(place))
        command = ["sh", "-c", _SCRIPT, "sh", HOST, str(PROGRAM)]
        return Server(name, command, place.logs / f"{name}.log", environment(name, place, file))

    def address(self, places: Mapping[str, Place], settings: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "host": HOST,
            "port": places["rabbit"].ports["client"],
            "user": "guest",
            "password": "guest",
            "host_name": "/",
            "exchange": "ackworth",
            "arguments": _QUEUES[settings["queue"]],
        }

    def attached(self, url: str, settings: Mapping[str, Any], name: str) -> dict[str, Any]:
        """The path is the virtual host. A certificate without a user is the user (EXTERNAL); nobody is `guest`."""
        found = urls.parse(url, self.schemes)
        nobody = found.user is None and "cert" not in (found.tls or {})
        login = {"user": "guest", "password": "guest"} if nobody else {}
        return {
            **found.address,
            **login,
            "host_name": found.path or "/",
            "exchange": name,
            "arguments": _QUEUES[settings["queue"]],
        }


def configuration(place: Place) -> str:
    lines = [
        f"listeners.tcp.1 = {HOST}:{place.ports['client']}",
        "log.console = true",
        "log.console.level = warning",
        "log.file = false",
    ]
    return "".join(f"{line}\n" for line in lines)


def environment(name: str, place: Place, file: Path) -> dict[str, str]:
    """What must survive is below the data; the rest is where no power is cut, or nowhere."""
    nowhere = str(place.logs / "none")
    return {
        "HOME": str(place.logs),
        "ERL_EPMD_PORT": str(place.ports["epmd"]),
        "ERL_EPMD_ADDRESS": HOST,
        "ERL_FLAGS": f"-start_epmd false -setcookie {secrets.token_hex(16)} "
        "-kernel inet_dist_use_interface {127,0,0,1}",
        "ERL_CRASH_DUMP_SECONDS": "0",
        "RUNNING_UNDER_SYSTEMD": "true",  # the script gives way to the node, instead of watching it
        "RABBITMQ_NODENAME": f"{name}@localhost",
        "RABBITMQ_DIST_PORT": str(place.ports["distribution"]),
        "RABBITMQ_CONF_ENV_FILE": nowhere,
        "RABBITMQ_CONFIG_FILE": str(file),
        "RABBITMQ_ADVANCED_CONFIG_FILE": nowhere,
        "RABBITMQ_ENABLED_PLUGINS_FILE": nowhere,
        "RABBITMQ_MNESIA_BASE": str(place.data),
        "RABBITMQ_GENERATED_CONFIG_DIR": str(place.logs),
        "RABBITMQ_LOG_BASE": str(place.logs),
        "RABBITMQ_PID_FILE": str(place.logs / f"{name}.pid"),
    }


BROKER = RabbitMQ()

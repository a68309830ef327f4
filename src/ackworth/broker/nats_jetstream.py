"""NATS JetStream: one nats-server whose stream is kept in files.

A server that is alone writes a message to its file before it acks it, and syncs its files every two minutes. With
`always` it syncs before every ack; servers before 2.10, such as Debian 12's, cannot be told so.
"""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from ackworth.broker import debian, urls
from ackworth.broker.contract import SINGLE, OneByOne, Place, Setting
from ackworth.broker.ports import HOST
from ackworth.broker.server import Server, find_program, not_installed
from ackworth.model.errors import Unavailable
from ackworth.model.verdict import Claims

PROGRAM = "nats-server"
STREAM = "ackworth"
_KNOWS_SYNC = (2, 10)  # the first version that can be told when to sync
_SURVIVES = {
    "2m": frozenset({"sigterm", "kill", "pause"}),
    "always": frozenset({"sigterm", "kill", "pause", "power-cut"}),
}


class NatsJetStream(OneByOne):
    name = "nats-jetstream"
    summary = "NATS with one stream in files, a subject for each topic and a durable consumer for each group"
    driver = "nats"
    embedded = False
    topologies = (SINGLE,)
    ports = ("client",)
    schemes: Mapping[str, int] = {"nats": 4222, "natss": 4222}
    settings: Mapping[str, Setting] = {
        "sync": Setting(
            means="how often files are synced: every two minutes, or before every ack (nats-server 2.10 or later)",
            values=("2m", "always"),
            default="2m",  # the safest that every version has
        ),
    }
    overhead = 100.0  # a record has a header, the subject and a checksum
    growth = 1.5

    def missing(self, topology: str = SINGLE) -> str | None:
        return not_installed(self.name, PROGRAM)

    def install(self) -> str:
        return debian.install(package="nats-server", service="nats-server")

    def version(self) -> str:
        return f"nats-server {'.'.join(map(str, version()))}"

    def claims(self, settings: Mapping[str, Any], topology: str = SINGLE) -> Claims:
        return Claims(
            survives=_SURVIVES[settings["sync"]],
            ordered=True,
            once=True,
            source="NATS documentation, 'JetStream', 'Syncing data to disk'; "
            "FAQ, 'Does NATS offer any guarantee of message ordering?'",
        )

    def nodes(self, topology: str) -> Sequence[str]:
        return ("nats",)

    def lacks(self, settings: Mapping[str, Any]) -> str | None:
        if settings["sync"] != "always" or version() >= _KNOWS_SYNC:
            return None
        return f"{self.version()} cannot sync before every ack: put 2.10 or later on PATH, or choose sync=2m"

    def node(self, name: str, place: Place, settings: Mapping[str, Any]) -> Server:
        if reason := self.lacks(settings):
            raise Unavailable(reason)
        file = place.logs / f"{name}.conf"
        file.write_text(configuration(place, settings["sync"]))
        return Server(name, [find_program(PROGRAM) or PROGRAM, "-c", file], place.logs / f"{name}.log")

    def address(self, places: Mapping[str, Place], settings: Mapping[str, Any]) -> dict[str, Any]:
        return {"host": HOST, "port": places["nats"].ports["client"], "stream": STREAM}

    def attached(self, url: str, settings: Mapping[str, Any], name: str) -> dict[str, Any]:
        """A user without a password, or a password without a user, is a token."""
        found = urls.parse(url, self.schemes)
        return {**found.without_path().address, "stream": name}


def version() -> tuple[int, ...]:
    """(2, 9, 10) from 'nats-server: v2.9.10'."""
    said = subprocess.run(
        [find_program(PROGRAM) or PROGRAM, "--version"], capture_output=True, text=True, check=False
    ).stdout
    return tuple(map(int, re.findall(r"\d+", said)[:3]))


def configuration(place: Place, sync: str) -> str:
    """Strings are written as in JSON."""
    store = {"store_dir": str(place.data), **({"sync_interval": sync} if sync == "always" else {})}
    return json.dumps({"host": HOST, "port": place.ports["client"], "jetstream": store}, indent=1) + "\n"


BROKER = NatsJetStream()

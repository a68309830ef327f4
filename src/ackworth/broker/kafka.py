"""Kafka in KRaft mode: one node that is broker and controller, for each kind of ack, synced at every message or never.

Kafka leaves syncing to the system unless told otherwise, and trusts replication for what a machine loses with its
power. A single node has no replicas, so without `flush_messages: 1` nothing is claimed for a power cut. With `acks: 0`
the broker says nothing at all, and an ack means that the message was sent.

`idempotent` is `all` with numbered batches: the client sends again what was not answered, the broker stores it once.
"""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from ackworth.broker import urls
from ackworth.broker.contract import SINGLE, OneByOne, Place, Setting
from ackworth.broker.maven import Jars
from ackworth.broker.ports import HOST
from ackworth.broker.server import Server, not_installed
from ackworth.model import java
from ackworth.model.errors import BadInput
from ackworth.model.files import cache
from ackworth.model.verdict import Claims

VERSION = "4.1.0"
JARS = Jars(
    f"kafka-{VERSION}",
    (
        f"org.apache.kafka:kafka_2.13:{VERSION}",
        f"org.apache.kafka:kafka-tools:{VERSION}",
        "org.slf4j:slf4j-simple:1.7.36",  # its warnings and errors, without a file of settings
    ),
)
_SASL = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_JAVA = ("-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Djava.awt.headless=true")
_CLUSTER = "ackworthAAAAAAAAAAAAAA"  # 22 characters of base64; a node must know its cluster before it begins
# Its directory is made ready once; then the server takes the shell's place, and so its death with the run. The program
# that makes it ready also leaves an archive of the classes that it has loaded: most are the server's too.
_SCRIPT = """
cluster=$1 file=$2 data=$3 archive=$4 new=
shift 4
cd "$data" || exit 1
if [ -e "$archive" ]; then set -- "$@" "-XX:SharedArchiveFile=$archive"; else new=$archive.$$; fi
[ -e logs/meta.properties ] || "$@" ${new:+"-XX:ArchiveClassesAtExit=$new"} -XX:TieredStopAtLevel=1 \\
    kafka.tools.StorageTool format --cluster-id "$cluster" --config "$file" || exit 1
[ ! -e "$new" ] || mv "$new" "$archive"
exec "$@" kafka.Kafka "$file"
"""


class Kafka(OneByOne):
    name = "kafka"
    summary = "Kafka with a topic of one partition for each topic, and a consumer group for each group"
    driver = "kafka"
    embedded = False
    topologies = (SINGLE,)
    ports = ("client", "controller")
    schemes: Mapping[str, int] = {"kafka": 9092, "kafkas": 9093}
    settings: Mapping[str, Setting] = {
        "acks": Setting(
            means="whose word is an ack: all replicas', also once and in order when sent again (idempotent); "
            "the leader's (1); or nobody's (0)",
            values=("idempotent", "all", 1, 0),
            default="idempotent",
        ),
        "flush_messages": Setting(
            means="after how many messages a partition is synced before the answer",
            values=(1, "never"),
            default=1,
        ),
    }
    overhead = 80.0  # a record's own fields, and its share of a batch's head
    growth = 1.5  # segments, and their indices, which are made larger than they need to be

    def missing(self, topology: str = SINGLE) -> str | None:
        if find_spec("confluent_kafka") is None:
            return "its driver needs the package confluent-kafka: pip install 'ackworth[kafka]'"
        return java.why_not(java.look()) or not_installed(self.name, JARS.folder)

    def install(self) -> str:
        return JARS.fetch()

    def version(self) -> str:
        return f"Kafka {VERSION}"

    def claims(self, settings: Mapping[str, Any], topology: str = SINGLE) -> Claims:
        survives = {"pause"}
        if settings["acks"] != 0:
            survives |= {"sigterm", "kill"}
            survives |= {"power-cut"} if settings["flush_messages"] == 1 else set()
        return Claims(
            survives=frozenset(survives),
            ordered=settings["acks"] != 0,  # of what is not acknowledged nothing is promised
            once=True,
            source="Kafka documentation, 'Producer Configs' (acks), 'Topic Configs' (flush.messages) and 'Replication'",
        )

    def nodes(self, topology: str) -> Sequence[str]:
        return ("kafka",)

    def node(self, name: str, place: Place, settings: Mapping[str, Any]) -> Server:
        file = place.logs / f"{name}.properties"
        file.write_text(configuration(place, settings))
        found = java.find()
        machine = [found.path, *_JAVA, "-cp", JARS.class_path]
        archive = java.Archive(cache(), found, JARS.name, VERSION).path
        command = ["sh", "-c", _SCRIPT, "sh", _CLUSTER, str(file), str(place.data), str(archive), *machine]
        return Server(name, command, place.logs / f"{name}.log")

    def address(self, places: Mapping[str, Place], settings: Mapping[str, Any]) -> dict[str, Any]:
        return {"servers": f"{HOST}:{places['kafka'].ports['client']}", "acks": settings["acks"]}

    def attached(self, url: str, settings: Mapping[str, Any], name: str) -> dict[str, Any]:
        """There may be several hosts. Who has a user says with `sasl` how it is proven; it is PLAIN if not said."""
        found = urls.parse(url, self.schemes, ["sasl"], several=True).without_path()
        sasl = found.options.get("sasl", _SASL[0])
        if sasl not in _SASL:
            raise BadInput(f"{found.shown}: sasl is '{sasl}', but must be one of {', '.join(_SASL)}")
        servers = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in found.hosts)
        return {**found.address, "servers": servers, "sasl": sasl, "acks": settings["acks"]}


def configuration(place: Place, settings: Mapping[str, Any]) -> str:
    client, controller = place.ports["client"], place.ports["controller"]
    lines = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listeners": f"CLIENT://{HOST}:{client},CONTROLLER://{HOST}:{controller}",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "CLIENT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": "logs",  # below where it is started: of a path with a comma it would make two
        "auto.create.topics.enable": "false",  # a topic that is lost must not come back empty
        # What the cluster keeps for itself has as many replicas as there are nodes.
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        # After a kill the controller takes the node back only when it has missed the old one for so long: 9 s as it
        # ships, of which a single node has nothing.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
    }
    if settings["flush_messages"] != "never":
        lines["log.flush.interval.messages"] = str(settings["flush_messages"])
    return "".join(f"{key}={value}\n" for key, value in lines.items())


BROKER = Kafka()

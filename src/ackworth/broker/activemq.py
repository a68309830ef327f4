"""ActiveMQ Classic with KahaDB: one broker, with a STOMP connector, whose journal is synced before every receipt, every
second, or never.

It is Debian's broker with a configuration of its own: neither JMX nor a console, and a broker that cannot start ends
its process. An orderly stop is the work of its launcher. Everything else is as it ships.
"""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from ackworth.broker import debian, urls
from ackworth.broker.contract import SINGLE, OneByOne, Place, Setting
from ackworth.broker.ports import HOST
from ackworth.broker.server import Server, not_installed
from ackworth.model import java
from ackworth.model.verdict import Claims

HOME = Path("/usr/share/activemq")
PREFIX = "VirtualTopic.ackworth"  # of the names of topics
_HEAP = ("-Xms512M", "-Xmx512M")  # as Debian starts it
_SURVIVES = {
    "always": frozenset({"sigterm", "kill", "pause", "power-cut"}),
    "periodic": frozenset({"sigterm", "pause"}),  # a receipt may come before the write, not only before the sync
    "never": frozenset({"sigterm", "pause"}),
}
_SPRING = "http://www.springframework.org/schema/beans"
_ACTIVEMQ = "http://activemq.apache.org/schema/core"
LOGGING = """log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %m%n
"""


class ActiveMQ(OneByOne):
    name = "activemq"
    summary = "ActiveMQ Classic over STOMP, a virtual topic for each topic and a queue of it for each group"
    driver = "stomp"
    embedded = False
    topologies = (SINGLE,)
    ports = ("stomp",)
    schemes: Mapping[str, int] = {"stomp": 61613, "stomps": 61614}
    settings: Mapping[str, Setting] = {
        "sync": Setting(
            means="when KahaDB's journal is synced: before every receipt, every second, or never",
            values=("always", "periodic", "never"),
            default="always",
        ),
    }
    overhead = 500.0  # a message is stored with all its properties, and is in the index too
    growth = 2.0

    def missing(self, topology: str = SINGLE) -> str | None:
        return not_installed(self.name, HOME / "lib") or java.why_not(java.look())

    def install(self) -> str:
        return debian.install(package="activemq", service="activemq")

    def version(self) -> str:
        with zipfile.ZipFile(HOME / "lib/activemq-broker.jar") as jar:
            manifest = jar.read("META-INF/MANIFEST.MF").decode()
        return f"ActiveMQ {manifest.partition('Implementation-Version: ')[2].split()[0]}"

    def claims(self, settings: Mapping[str, Any], topology: str = SINGLE) -> Claims:
        return Claims(
            survives=_SURVIVES[settings["sync"]],
            ordered=True,
            ordered_alone=True,
            once=True,
            source="ActiveMQ documentation, 'KahaDB', journalDiskSyncStrategy; "
            "FAQ, 'How do I preserve order of messages'",
        )

    def nodes(self, topology: str) -> Sequence[str]:
        return ("activemq",)

    def node(self, name: str, place: Place, settings: Mapping[str, Any]) -> Server:
        file, logging = place.logs / f"{name}.xml", place.logs / f"{name}-log4j.properties"
        file.write_text(configuration(place, settings["sync"]))
        logging.write_text(LOGGING)
        command = [
            java.find().path,
            *_HEAP,
            f"-Dactivemq.home={HOME}",
            f"-Dactivemq.base={place.data}",
            f"-Dlog4j.configuration={logging.as_uri()}",
            "-cp",
            f"{HOME}/lib/*:{HOME}/lib/optional/*",
            "org.apache.activemq.console.Main",
            "start",
            f"xbean:{file.as_uri()}",
        ]
        return Server(name, command, place.logs / f"{name}.log")

    def address(self, places: Mapping[str, Place], settings: Mapping[str, Any]) -> dict[str, Any]:
        return {"host": HOST, "port": places["activemq"].ports["stomp"], "prefix": PREFIX}

    def attached(self, url: str, settings: Mapping[str, Any], name: str) -> dict[str, Any]:
        return {**urls.parse(url, self.schemes).without_path().address, "prefix": PREFIX}


def configuration(place: Place, sync: str) -> str:
    data, connector = quoteattr(str(place.data)), quoteattr(f"stomp+nio://{HOST}:{place.ports['stomp']}")
    return f"""<beans xmlns="{_SPRING}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
    xsi:schemaLocation="{_SPRING} {_SPRING}/spring-beans.xsd {_ACTIVEMQ} {_ACTIVEMQ}/activemq-core.xsd">
  <broker xmlns="{_ACTIVEMQ}" brokerName="activemq" dataDirectory={data} useJmx="false"
      useShutdownHook="false" systemExitOnShutdown="true" systemExitOnShutdownExitCode="1">
    <persistenceAdapter><kahaDB directory={data} journalDiskSyncStrategy="{sync}"/></persistenceAdapter>
    <transportConnectors><transportConnector name="stomp" uri={connector}/></transportConnectors>
  </broker>
</beans>
"""


BROKER = ActiveMQ()

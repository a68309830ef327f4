"""Our driver of ActiveMQ against ActiveMQ's own producer, with the journal never synced; see bench/clients.py.

    .venv/bin/python bench/activemq.py [--messages 50000] [--rounds 5] [--window 1000] [--size 128]

`activemq producer` speaks OpenWire, and waits for the broker's answer after each persistent message, as JMS has it. It
is a Java program: what it takes to start is in its CPU, so it wants many messages.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clients import TOPIC, Cost, Load, compare, measured

from ackworth.broker import activemq
from ackworth.broker.contract import Place
from ackworth.broker.server import Server
from ackworth.driver.contract import Address
from ackworth.model import java


class WithOpenWire(activemq.ActiveMQ):
    """The same broker with a connector for its own producer."""

    ports = ("stomp", "openwire")

    def node(self, name: str, place: Place, settings: Mapping[str, Any]) -> Server:
        node = super().node(name, place, settings)
        file = place.logs / f"{name}.xml"
        connector = f'<transportConnector name="openwire" uri="tcp://127.0.0.1:{place.ports["openwire"]}"/>'
        file.write_text(file.read_text().replace("</transportConnectors>", f"{connector}</transportConnectors>"))
        return node

    def address(self, places: Mapping[str, Place], settings: Mapping[str, Any]) -> dict[str, Any]:
        return {**super().address(places, settings), "openwire": places["activemq"].ports["openwire"]}


def activemq_producer(address: Address, load: Load, folder: Path) -> Cost:
    options = {
        "brokerUrl": f"tcp://{address['host']}:{address['openwire']}",
        "destination": f"topic://{address['prefix']}.{TOPIC}",
        "messageCount": load.messages,
        "messageSize": load.size,
        "persistent": "true",
    }
    logging = folder / "log4j.properties"
    logging.write_text(activemq.LOGGING.replace("WARN", "INFO"))
    classes = f"{activemq.HOME}/lib/*:{activemq.HOME}/lib/optional/*"
    command = [java.find().path, f"-Dactivemq.home={activemq.HOME}", "-cp", classes]
    command += [f"-Dlog4j.configuration={logging.as_uri()}"]
    command += ["org.apache.activemq.console.Main", "producer"]
    command += [word for name, value in options.items() for word in (f"--{name}", str(value))]
    # It does not fail if it is told something wrong, but then it does not say that it produced so many.
    return measured(load, command, milliseconds=rf"Produced: {load.messages} messages[^$]*milli second : (\d+)")


if __name__ == "__main__":
    compare(WithOpenWire(), {"sync": "never"}, "activemq producer", activemq_producer, __doc__)

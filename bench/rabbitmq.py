"""Our driver of AMQP against PerfTest, RabbitMQ's own tool, with a quorum queue; see bench/clients.py.

    .venv/bin/python bench/rabbitmq.py [--messages 200000] [--rounds 3] [--window 1000] [--size 128]

PerfTest is fetched from Maven Central. It sends persistent, mandatory messages with confirms, as we do, to the
same exchange and queue.
"""

from pathlib import Path

from clients import TOPIC, Cost, Load, compare, measured

from ackworth.broker.maven import Jars
from ackworth.broker.rabbitmq import BROKER
from ackworth.driver.contract import Address
from ackworth.model import java

PERF_TEST = Jars("perf-test-2.22.1", ("com.rabbitmq:perf-test:2.22.1",))
GROUP = "group-0"


def perf_test(address: Address, load: Load, folder: Path) -> Cost:
    command = [java.find().path, "-cp", PERF_TEST.class_path, "com.rabbitmq.perf.PerfTest"]
    command += ["--uri", "amqp://{user}:{password}@{host}:{port}".format(**address), "--predeclared"]
    command += ["--exchange", "ackworth", "--routing-key", TOPIC, "--queue", f"{TOPIC}.{GROUP}"]
    command += ["--producers", "1", "--consumers", "0", "--flag", "persistent", "--flag", "mandatory"]
    command += ["--confirm", str(load.window), "--pmessages", str(load.messages), "--size", str(load.size)]
    return measured(load, command, rate=r"sending rate avg: ([\d,.]+)")


if __name__ == "__main__":
    if not PERF_TEST.there():
        PERF_TEST.fetch()
    compare(BROKER, {}, "PerfTest", perf_test, __doc__, groups=[GROUP])

"""Our driver of Kafka against kafka-producer-perf-test, with acks of all replicas; see bench/clients.py.

    .venv/bin/python bench/kafka.py [--messages 500000] [--rounds 3] [--window 1000] [--size 128]

Kafka's tool knows no window of messages. It sends as fast as its buffer allows: that is made as large as the window's
bodies, and at least as large as one batch.
"""

from pathlib import Path

from clients import TOPIC, Cost, Load, compare, measured

from ackworth.broker.kafka import BROKER, JARS
from ackworth.driver.contract import Address
from ackworth.model import java

BATCH = 16384  # its default


def perf_test(address: Address, load: Load, folder: Path) -> Cost:
    command = [java.find().path, "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", JARS.class_path]
    command += ["org.apache.kafka.tools.ProducerPerformance", "--topic", TOPIC, "--throughput", "-1"]
    command += ["--num-records", str(load.messages), "--record-size", str(load.size), "--producer-props"]
    command += [f"bootstrap.servers={address['servers']}", "acks=all", "enable.idempotence=true"]
    command += [f"buffer.memory={max(BATCH, load.window * load.size)}", f"batch.size={BATCH}"]
    return measured(load, command, rate=r"records sent, ([\d,.]+) records/sec")


if __name__ == "__main__":
    compare(BROKER, {"flush_messages": "never"}, "kafka-producer-perf-test", perf_test, __doc__)

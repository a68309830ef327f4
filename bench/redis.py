"""Our driver of Redis Streams against redis-benchmark, with the append-only file off; see bench/clients.py.

    .venv/bin/python bench/redis.py [--messages 1000000] [--rounds 5] [--window 1000] [--size 128]

redis-benchmark writes as many commands as `-P` says, waits until all are answered, and writes the same bytes again. It
has as much in flight as the driver, which keeps its window full by halves, but less to do: the driver has a body for
each message, and says of each message what became of it. The start of redis-benchmark is not counted, as the driver's
is not: the CPU that a run of a single window takes is subtracted.
"""

from dataclasses import replace
from pathlib import Path

from clients import TOPIC, Cost, Load, compare, measured

from ackworth.broker.redis_streams import BROKER
from ackworth.driver.contract import Address


def redis_benchmark(address: Address, load: Load, folder: Path) -> Cost:
    first, whole = _run(address, replace(load, messages=load.window)), _run(address, load)
    cpu = whole.microseconds * load.messages - first.microseconds * load.window
    return replace(whole, microseconds=cpu / (load.messages - load.window))


def _run(address: Address, load: Load) -> Cost:
    command = ["redis-benchmark", "-h", address["host"], "-p", str(address["port"]), "-c", "1", "-q"]
    command += ["-n", str(load.messages), "-P", str(load.window), "XADD", TOPIC, "*", "b", "x" * load.size]
    return measured(load, command, rate=r"([\d.]+) requests per second")


if __name__ == "__main__":
    compare(BROKER, {"appendonly": "off"}, "redis-benchmark", redis_benchmark, __doc__)

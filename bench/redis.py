"""Our driver of Redis Streams against redis-benchmark, in turn, in one run.

    .venv/bin/python bench/redis.py [--messages 1000000] [--rounds 5] [--window 1000] [--size 128]

Both send XADD of one size with the same number of commands in flight over one connection, to one redis-server
without persistence, whose stream is emptied before each turn:

    redis-benchmark   sends the same bytes again and again
    driver            ours alone: encodes, sends, reads the answers; bodies are made beforehand
    worker            a whole producer of ours: paced, bodies made and summed, every message in the record

CPU is that of the client's process, user and system, for each acked message. Prints the medians and their
ratios to redis-benchmark.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ackworth.broker.redis_streams import BROKER
from ackworth.driver import resp
from ackworth.driver.contract import Address, Outgoing
from ackworth.load.body import Bodies
from ackworth.load.worker import Order
from ackworth.testing.nodes import running

TOPIC = "topic-000"
BODY_SETS = 64  # so many batches are made beforehand, and sent in turn


@dataclass(frozen=True)
class Load:
    messages: int
    window: int
    size: int


@dataclass(frozen=True)
class Cost:
    """Of one turn."""

    microseconds: float  # of CPU, for each message
    rate: float  # messages a second


def redis_benchmark(address: Address, load: Load, folder: Path) -> Cost:
    command = ["redis-benchmark", "-h", address["host"], "-p", str(address["port"]), "-c", "1", "-q"]
    command += ["-n", str(load.messages), "-P", str(load.window), "XADD", TOPIC, "*", "b", "x" * load.size]
    return measured(load, lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))


def driver(address: Address, load: Load, folder: Path) -> Cost:
    """In a process of its own, so that its CPU is its own."""
    command = [sys.executable, __file__, "--as-driver", json.dumps([address, asdict(load)])]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Cost(**json.loads(done.stdout))


def drive(address: Address, load: Load) -> Cost:
    """Keep the window full: half of it is sent as soon as there is room for it."""
    batch = load.window // 2
    topics, sizes = np.zeros(batch, np.int64), np.full(batch, load.size)
    bodies = [Bodies(1).build(0, topics, i * batch, sizes, 1) for i in range(BODY_SETS)]
    sender = resp.Sender(address, [TOPIC], 0)
    sent = acked = 0
    before, began = os.times(), time.monotonic()
    while acked < load.messages:
        while sent < load.messages and sent - acked + batch <= load.window:
            sender.send(Outgoing(sent, topics, bodies[sent // batch % BODY_SETS], sizes))
            sent += batch
        acked += len(sender.answers(10))
    seconds, after = time.monotonic() - began, os.times()
    sender.close()
    cpu = after.user - before.user + after.system - before.system
    return Cost(cpu / acked * 1e6, acked / seconds)


def worker(address: Address, load: Load, folder: Path) -> Cost:
    order = Order(
        role="produce",
        parent=os.getpid(),
        driver="resp",
        address=address,
        topics=[TOPIC],
        groups=[],
        run="00000000000000ff",
        seed=0,
        spool=str(folder / "spool"),
        sizes=[load.size],
        window=load.window,
        batch=load.window // 2,
        producers=[[0, 0, 0, load.messages]],
    )
    command = [sys.executable, "-m", "ackworth.load.worker"]
    return measured(
        load, lambda: subprocess.run(command, check=True, input=json.dumps(asdict(order)) + "\n0\n", text=True)
    )


def measured(load: Load, run: Callable[[], object]) -> Cost:
    """A process from its start to its end: what it takes to begin is in it."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    run()
    seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Cost(cpu / load.messages * 1e6, load.messages / seconds)


WAYS = {"redis-benchmark": redis_benchmark, "driver": driver, "worker": worker}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--window", type=int, default=1000)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--as-driver", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.as_driver:
        address, load = json.loads(args.as_driver)
        print(json.dumps(asdict(drive(address, Load(**load)))))
        return
    load = Load(args.messages, args.window, args.size)
    costs: dict[str, list[Cost]] = {name: [] for name in WAYS}
    for turn in range(args.rounds):
        for name in list(WAYS)[turn % 3 :] + list(WAYS)[: turn % 3]:  # none always goes first
            costs[name].append(one_turn(name, load))
        said = (f"{name} {found[-1].microseconds:.3f} us, {found[-1].rate:,.0f}/s" for name, found in costs.items())
        print(f"round {turn + 1}: {'; '.join(said)}", flush=True)
    conclude(costs)


def one_turn(name: str, load: Load) -> Cost:
    with (
        tempfile.TemporaryDirectory(dir=".") as folder,
        running(BROKER, Path(folder) / "redis", appendonly="off") as found,
    ):
        return WAYS[name](found.address, load, Path(folder).resolve())


def conclude(costs: dict[str, list[Cost]]) -> None:
    cpu = {name: statistics.median(c.microseconds for c in found) for name, found in costs.items()}
    rate = {name: statistics.median(c.rate for c in found) for name, found in costs.items()}
    for name in ("driver", "worker"):
        print(
            f"{name}: {cpu[name]:.3f} us of CPU a message, {cpu[name] / cpu['redis-benchmark']:.2f} of "
            f"redis-benchmark's {cpu['redis-benchmark']:.3f}; {rate[name]:,.0f}/s, "
            f"{rate[name] / rate['redis-benchmark']:.2f} of its {rate['redis-benchmark']:,.0f}/s"
        )


if __name__ == "__main__":
    main()

"""What our driver costs against another client of the same broker: in turn, in one run.

Each way sends the same number of messages of one size with the same number in flight over one connection, to a server
that has just been started:

    driver   ours alone: encodes, sends, reads the answers; bodies are made beforehand
    worker   a whole producer of ours: paced, bodies made and summed, every message in the record

CPU is that of the client's process, user and system, for each acked message. Prints the medians and their ratios to
the peer's.
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

from ackworth.broker.contract import Broker
from ackworth.driver.contract import Address, Outgoing
from ackworth.driver.contract import load as load_driver
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


Way = Callable[[Address, Load, Path], Cost]


def compare(broker: Broker, settings: dict[str, str], name: str, peer: Way, description: str | None) -> None:
    """The whole command. With `--as-driver` it is the process that `driver` starts."""
    args = _arguments(description)
    if args.as_driver:
        address, load = json.loads(args.as_driver)
        print(json.dumps(asdict(_drive(broker.driver, address, Load(**load)))))
        return
    ways: dict[str, Way] = {name: peer, "driver": _driver, "worker": lambda *rest: _worker(broker.driver, *rest)}
    costs: dict[str, list[Cost]] = {way: [] for way in ways}
    load = Load(args.messages, args.window, args.size)
    for turn in range(args.rounds):
        for way in list(ways)[turn % 3 :] + list(ways)[: turn % 3]:  # none always goes first
            costs[way].append(_one_turn(broker, settings, ways[way], load))
        said = (f"{way} {found[-1].microseconds:.3f} us, {found[-1].rate:,.0f}/s" for way, found in costs.items())
        print(f"round {turn + 1}: {'; '.join(said)}", flush=True)
    _conclude(name, costs)


def _arguments(description: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--window", type=int, default=1000)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--as-driver", help=argparse.SUPPRESS)
    return parser.parse_args()


def _one_turn(broker: Broker, settings: dict[str, str], way: Way, load: Load) -> Cost:
    with (
        tempfile.TemporaryDirectory(dir=".") as folder,
        running(broker, Path(folder) / broker.name, **settings) as found,
    ):
        load_driver(broker.driver).prepare(found.address, [TOPIC], ["group-0"])
        return way(found.address, load, Path(folder).resolve())


def _driver(address: Address, load: Load, folder: Path) -> Cost:
    """In a process of its own, so that its CPU is its own."""
    command = [sys.executable, sys.argv[0], "--as-driver", json.dumps([address, asdict(load)])]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Cost(**json.loads(done.stdout))


def _drive(driver: str, address: Address, load: Load) -> Cost:
    """Keep the window full: half of it is sent as soon as there is room for it."""
    batch = load.window // 2
    topics, sizes = np.zeros(batch, np.int64), np.full(batch, load.size)
    bodies = [Bodies(1).build(0, topics, i * batch, sizes, 1) for i in range(BODY_SETS)]
    sender = load_driver(driver).Sender(address, [TOPIC], 0)
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


def _worker(driver: str, address: Address, load: Load, folder: Path) -> Cost:
    order = Order(
        role="produce",
        parent=os.getpid(),
        driver=driver,
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
    lines = json.dumps(asdict(order)) + "\n0\n"
    return measured(
        load, lambda: subprocess.run(command, check=True, input=lines, text=True, stdout=subprocess.DEVNULL)
    )


def measured(load: Load, run: Callable[[], object]) -> Cost:
    """A process from its start to its end: what it takes to begin is in it."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    run()
    seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Cost(cpu / load.messages * 1e6, load.messages / seconds)


def _conclude(peer: str, costs: dict[str, list[Cost]]) -> None:
    cpu = {way: statistics.median(c.microseconds for c in found) for way, found in costs.items()}
    rate = {way: statistics.median(c.rate for c in found) for way, found in costs.items()}
    for way in ("driver", "worker"):
        print(
            f"{way}: {cpu[way]:.3f} us of CPU a message, {cpu[way] / cpu[peer]:.2f} of {peer}'s {cpu[peer]:.3f}; "
            f"{rate[way]:,.0f}/s, {rate[way] / rate[peer]:.2f} of its {rate[peer]:,.0f}/s"
        )

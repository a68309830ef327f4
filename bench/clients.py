"""What our driver costs against another client of the same broker: in turn, in one run.

Each way sends the same number of messages of one size with the same number in flight over one connection, to a server
that has just been started and has taken in a tenth as many before:

    driver   ours alone: encodes, sends, reads the answers; bodies are made beforehand
    worker   a whole producer of ours: paced, bodies made and summed, every message in the record

CPU is that of the client's process, user and system, for each acked message; of the peer and the worker from the
start of their processes to the end, unless a bench says otherwise. A rate is that of sending and acking alone: where a
peer reports its own, it is that. Each round has all ways in turn, so what disturbs the machine for longer disturbs all
of them: the ratio to the peer is made round by round, and what is printed is the middle one, with the least and the
greatest.
"""

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from ackworth.broker.contract import Broker
from ackworth.driver.contract import Address, Outgoing
from ackworth.driver.contract import load as load_driver
from ackworth.load.body import Bodies
from ackworth.load.worker import ENVIRONMENT, Order
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


def compare(
    broker: Broker,
    settings: dict[str, str],
    name: str,
    peer: Way,
    description: str | None,
    groups: Sequence[str] = (),
) -> None:
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
            costs[way].append(_one_turn(broker, settings, groups, ways[way], load))
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


def _one_turn(broker: Broker, settings: dict[str, str], groups: Sequence[str], way: Way, load: Load) -> Cost:
    with (
        tempfile.TemporaryDirectory(dir=".") as folder,
        running(broker, Path(folder) / broker.name, **settings) as found,
    ):
        load_driver(broker.driver).prepare(found.address, [TOPIC], groups)
        _drive(broker.driver, found.address, replace(load, messages=load.messages // 10))
        return way(found.address, load, Path(folder).resolve())


def _driver(address: Address, load: Load, folder: Path) -> Cost:
    """In a process of its own, so that its CPU is its own."""
    command = [sys.executable, sys.argv[0], "--as-driver", json.dumps([address, asdict(load)])]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **ENVIRONMENT})
    return Cost(**json.loads(done.stdout))


def _drive(driver: str, address: Address, load: Load) -> Cost:
    """Keep the window full: half of it is sent as soon as there is room for it."""
    batch = load.window // 2
    topics, sizes = np.zeros(batch, np.int64), np.full(batch, load.size)
    bodies = [Bodies(1).build(0, topics, i * batch, sizes, 1) for i in range(BODY_SETS)]
    sender = load_driver(driver).Sender(address, [TOPIC], 0)
    sent = acked = 0
    before, began = time.process_time(), time.monotonic()
    while acked < load.messages:
        while sent < load.messages and sent - acked + batch <= load.window:
            sender.send(Outgoing(sent, topics, bodies[sent // batch % BODY_SETS], sizes))
            sent += batch
        acked += len(sender.answers(10))
    seconds, cpu = time.monotonic() - began, time.process_time() - before
    sender.close()
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
    before = cpu_of_children()
    environment = {**os.environ, **ENVIRONMENT}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(asdict(order)) + "\n")
        process.stdin.flush()
        process.stdout.readline()  # it is up, and waits for the time to begin
        began = time.monotonic()
        process.communicate("0\n")
        seconds = time.monotonic() - began
    return Cost((cpu_of_children() - before) / load.messages * 1e6, load.messages / seconds)


def measured(load: Load, command: Sequence[str], milliseconds: str = "", rate: str = "") -> Cost:
    """A process from its start to its end. One of two patterns finds, at last in what it says, how fast it was."""
    before = cpu_of_children()
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    cpu = cpu_of_children() - before
    found = re.findall(milliseconds or rate, said)
    if not found:
        raise SystemExit(f"{command[0]} did not say how fast it was, but: {said[-500:]}")
    figure = float(found[-1].replace(",", ""))
    return Cost(cpu / load.messages * 1e6, load.messages / figure * 1000 if milliseconds else figure)


def cpu_of_children() -> float:
    """In seconds, of those that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _conclude(peer: str, costs: dict[str, list[Cost]]) -> None:
    cpu = {way: [cost.microseconds for cost in found] for way, found in costs.items()}
    rate = {way: [cost.rate for cost in found] for way, found in costs.items()}
    for way in ("driver", "worker"):
        print(
            f"{way}: {statistics.median(cpu[way]):.3f} us of CPU a message against {peer}'s "
            f"{statistics.median(cpu[peer]):.3f}: {_ratio(cpu[way], cpu[peer])}; {statistics.median(rate[way]):,.0f}/s "
            f"against {statistics.median(rate[peer]):,.0f}/s: {_ratio(rate[way], rate[peer])}"
        )


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Round by round."""
    ratios = [our / their for our, their in zip(ours, theirs, strict=True)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"

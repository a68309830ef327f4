"""A worker: one process that runs some producers or some consumers, as its order says.

    python -m ackworth.load.worker

Its order is the first line on its standard input. It dies with the conductor (parent-death signal), and
says in a line on its standard output that it is `up`, and from then on, every quarter of a second and whenever it
changes, that it is `ready`, `idle` (its consumers asked, and there was nothing), or in `trouble` with the
broker. Producers wait for a second line, the time that their schedule counts from. It stops gracefully at
SIGTERM, and ends by itself when its producers have nothing left to send. Exit code 0 means that it did what
it was told; what went wrong stands in its last line on stderr.
"""

import ctypes
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ackworth.driver import contract
from ackworth.history.schema import DELIVERED, OUTCOME, SENT
from ackworth.history.spool import Spool
from ackworth.load.body import Bodies
from ackworth.load.consumer import Consumer
from ackworth.load.pacing import AsFastAsPossible, AtRate
from ackworth.load.producer import Producer, Quota
from ackworth.model.clock import SECOND, Clock, MonotonicClock
from ackworth.model.errors import AckworthError

# Numpy's linear algebra, which no worker needs, would start threads that wait by spinning.
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1"}

_PR_SET_PDEATHSIG = 1
FAILED = 3  # the exit code of one that could not do what it was told
AGAIN = SECOND // 4  # how often it says how it goes, also if nothing changed
LONGEST_WAIT = SECOND // 20  # so that a signal to stop is noticed
PATIENCE = 30 * SECOND  # how long a broker may answer nothing before what is in flight counts as unknown


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a worker is told, as JSON on its standard input."""

    role: str  # 'prepare', 'produce' or 'consume'
    parent: int  # pid of the conductor
    driver: str
    address: dict[str, Any]
    topics: list[str]
    groups: list[str]
    run: str  # hex
    seed: int
    sends: list[list[int]] | None = None  # by producer, indexes of its topics; None: each sends to all
    reads: list[list[int]] | None = None  # by group, indexes of its topics; None: each reads all
    spool: str | None = None  # None: nothing is recorded (to measure what recording costs)
    sizes: list[int] | None = None  # see plan.BodySize
    weights: list[float] | None = None
    window: int = 0
    batch: int = 0
    rate: float | None = None  # a second, for each producer; None: closed loop
    producers: list[list[int]] | None = None  # [producer, first seq of the phase, next seq, one past the last]
    consumers: list[list[int]] | None = None  # [consumer, group]
    broadcast: bool = False  # each group is a client of a broadcast
    refuse: int | None = None  # see plan.Workload
    patience: float = 0  # seconds in which a broker that is prepared must answer


def main() -> int:
    order = Order(**json.loads(sys.stdin.readline()))
    die_with(order.parent)
    try:
        {"prepare": prepare, "produce": produce, "consume": consume}[order.role](order)
    except (AckworthError, contract.ConnectionLost, OSError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201 - the conductor reads it
        return FAILED
    finally:
        # An interpreter that ends forgets its handlers, and one that is asked to end twice would die of it.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return 0


def die_with(parent: int) -> None:
    """Be killed when the parent dies, also if it died already."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def prepare(order: Order) -> None:
    """Try again and again: a broker that has just started may not answer yet."""
    driver = contract.load(order.driver)
    deadline = time.monotonic() + order.patience
    while True:
        try:
            for number, group in enumerate(() if order.broadcast else order.groups):
                driver.prepare(order.address, _names(order, _topics(order, order.reads, number)), [group])
            return driver.prepare(order.address, order.topics, [])  # also those that no group reads
        except contract.ConnectionLost:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def produce(order: Order, clock: Clock | None = None) -> None:
    clock = clock or MonotonicClock()
    driver = contract.load(order.driver)
    stop = _stop_at_sigterm()
    print("up", flush=True)  # noqa: T201
    start = int(sys.stdin.readline())
    producers = [_producer(order, driver, clock, start, *entry) for entry in order.producers or ()]
    tell = _Teller(clock)
    while not all(p.finished for p in producers):
        for producer in producers:
            producer.stopping = stop()
        busy = [p.step(0) for p in producers]
        tell([p.trouble for p in producers], idle=False)
        if not any(busy):
            wait(clock, producers, SECOND // 1000)
    for producer in producers:
        producer.close()


def consume(order: Order, clock: Clock | None = None) -> None:
    clock = clock or MonotonicClock()
    driver = contract.load(order.driver)
    stop = _stop_at_sigterm()
    consumers = [_consumer(order, driver, clock, *entry) for entry in order.consumers or ()]
    tell = _Teller(clock)
    while not stop():
        busy = [c.step(0) for c in consumers]
        tell([c.trouble for c in consumers], idle=all(c.idle for c in consumers))
        if not any(busy):
            wait(clock, consumers, SECOND // 200)
    for consumer in consumers:
        consumer.close()


def wait(clock: Clock, loads: Sequence[Producer] | Sequence[Consumer], polling: int) -> None:
    """Until one of them has something to do, or news for one of them has come.

    Where a driver has no descriptor to wait on, look again after `polling` nanoseconds.
    """
    connections = [load.connection for load in loads if load.connection is not None]
    descriptors = [each.fileno() for each in connections if isinstance(each, contract.Waitable)]
    now = clock.now()
    longest = LONGEST_WAIT if len(descriptors) == len(connections) else polling
    until = min(now + longest, max(now + 20_000, min(load.next_at() for load in loads)))
    if descriptors:
        _await_news(descriptors, (until - now) / SECOND)
    else:
        clock.sleep_until(until)


def _await_news(descriptors: list[int], seconds: float) -> None:
    """`select` is exact to the microsecond, but takes no descriptors from 1024 on; `poll` does, by the millisecond."""
    try:
        select.select(descriptors, (), (), seconds)
    except ValueError:
        poll = select.poll()
        for descriptor in descriptors:
            poll.register(descriptor, select.POLLIN)
        poll.poll(seconds * 1000)


def _producer(
    order: Order, driver: contract.Driver, clock: Clock, start: int, producer: int, base: int, first: int, last: int
) -> Producer:
    return Producer(
        producer=producer,
        connect=lambda: driver.Sender(order.address, order.topics, producer),
        sent=_spool(order, SENT, f"p{producer:05d}"),
        outcomes=_spool(order, OUTCOME, f"p{producer:05d}"),
        bodies=Bodies(int(order.run, 16)),
        topics=_topics(order, order.sends, producer),
        sizes=_sizes(order, producer, first),
        pace=AtRate(start, order.rate) if order.rate else AsFastAsPossible(),
        quota=Quota(base=base, first=first, last=last),
        window=order.window,
        batch=order.batch,
        patience=PATIENCE,
        clock=clock,
    )


def _consumer(order: Order, driver: contract.Driver, clock: Clock, consumer: int, group: int) -> Consumer:
    topics = _topics(order, order.reads, group)
    receiver = driver.Listener if order.broadcast and isinstance(driver, contract.Broadcasting) else driver.Receiver
    return Consumer(
        consumer=consumer,
        group=group,
        topics=topics,
        connect=lambda: receiver(order.address, _names(order, topics), order.groups[group], consumer),
        delivered=_spool(order, DELIVERED, f"c{consumer:05d}"),
        bodies=Bodies(int(order.run, 16)),
        batch=order.batch,
        refuse=order.refuse,
        clock=clock,
    )


def _topics(order: Order, lists: list[list[int]] | None, number: int) -> contract.Int64s:
    """The indexes of the topics of a producer or a group."""
    return np.arange(len(order.topics)) if lists is None else np.array(lists[number])


def _names(order: Order, topics: contract.Int64s) -> list[str]:
    return [order.topics[index] for index in topics]


def _sizes(order: Order, producer: int, first: int) -> Callable[[int], contract.Int64s]:
    sizes, weights = order.sizes or [], order.weights
    if len(set(sizes)) == 1:
        return lambda count: np.full(count, sizes[0])
    random = np.random.default_rng([order.seed, producer, first])
    if weights is None:
        return lambda count: random.integers(sizes[0], sizes[-1], count, endpoint=True)
    shares = np.array(weights) / sum(weights)
    return lambda count: random.choice(np.array(sizes), count, p=shares)


class _Teller:
    """Tells the conductor how it goes, whenever that changes, and again and again: who says nothing stands still."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told = ""
        self._again_at = 0

    def __call__(self, troubles: Sequence[str | None], *, idle: bool) -> None:
        trouble = next((text for text in troubles if text is not None), None)
        state = f"trouble {trouble}".splitlines()[0] if trouble is not None else "idle" if idle else "ready"
        if state != self._told or self._clock.now() >= self._again_at:
            self._told, self._again_at = state, self._clock.now() + AGAIN
            print(state, flush=True)  # noqa: T201


class _NoSpool:
    def append(self, count: int, **columns: object) -> None:
        """Nothing is kept."""


def _spool(order: Order, table: Any, series: str) -> Any:
    return Spool(Path(order.spool), table, series) if order.spool else _NoSpool()


def _stop_at_sigterm() -> Callable[[], bool]:
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: asked.append(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the conductor decides
    return lambda: bool(asked)


if __name__ == "__main__":
    sys.exit(main())

"""A whole trial in this process: real producers, consumers and record, a broker in memory, a fake clock."""

from pathlib import Path
from typing import Any

import numpy as np

from ackworth.history.lines import Lines
from ackworth.history.meta import End, Group, Trial, write_end, write_trial
from ackworth.history.schema import DELIVERED, MARK, OUTCOME, SENT
from ackworth.history.settle import settle
from ackworth.history.spool import Spool
from ackworth.load.body import Bodies
from ackworth.load.consumer import Consumer
from ackworth.load.pacing import AsFastAsPossible
from ackworth.load.producer import Producer, Quota
from ackworth.model.clock import SECOND
from ackworth.model.verdict import Claims
from ackworth.testing.clock import FakeClock
from ackworth.testing.liar import Ids, Liar

EVERYTHING = Claims(survives=frozenset({"kill", "power-cut"}), ordered=True, once=True, source="the test")


def play(
    directory: Path,
    liar: Liar,
    *,
    run: int,
    messages: int,
    producers: int = 2,
    topics: int = 1,
    groups: int = 1,
    size: int = 64,
    batch: int = 8192,
    crash: bool = False,
    refuse: int | None = None,
    expect: dict[str, Any] | None = None,
) -> Ids:
    """Send, crash if told so, drain; leaves a whole record. Returns what the crash lost."""
    clock = FakeClock()
    directory.mkdir(parents=True)
    spool = directory / "spool"
    trial = Trial(
        run=f"{run:016x}",
        name=directory.name,
        plan={"expect": expect or {}, "workload": {}, "faults": []},
        topics=tuple(f"topic-{i}" for i in range(topics)),
        groups=tuple(Group(name=f"group-{i}", topics=None) for i in range(groups)),
        producers=producers,
        consumers=groups,
        reasons=("", "no answer in time"),
        claims=EVERYTHING,
        seed=0,
        t_zero=clock.now(),
        wall_zero="2026-01-01T00:00:00+00:00",
        broker={"kind": "liar", "version": "0", "topology": "single", "settings": {}},
    )
    write_trial(directory, trial)
    marks = Lines(spool, MARK)
    crew = [_producer(liar, spool, run, p, messages, topics, size, batch, clock) for p in range(producers)]
    while not all(p.finished for p in crew):
        for producer in crew:
            producer.step(0)
    lost = _crash(liar, marks, clock) if crash else set()
    liar.flush()
    for group in range(groups):
        consumer = _consumer(liar, spool, run, topics, group, refuse, clock)
        while consumer.step(0):
            pass
    marks.close()
    write_end(directory, End(t=clock.now(), drained=True))
    settle(directory)
    return lost


def _crash(liar: Liar, marks: Lines, clock: FakeClock) -> Ids:
    begin = clock.now()
    lost = liar.crash()
    marks.append(what="fault", name="kill", node="liar", t_begin=begin, t_end=clock.now(), detail="{}")
    return lost


def _producer(
    liar: Liar,
    spool: Path,
    run: int,
    producer: int,
    messages: int,
    topics: int,
    size: int,
    batch: int,
    clock: FakeClock,
) -> Producer:
    return Producer(
        producer=producer,
        connect=lambda: liar.sender(producer),
        sent=Spool(spool, SENT, f"p{producer:05d}"),
        outcomes=Spool(spool, OUTCOME, f"p{producer:05d}"),
        bodies=Bodies(run),
        topics=np.arange(topics),
        sizes=lambda count: np.full(count, size),
        pace=AsFastAsPossible(),
        quota=Quota(base=0, first=0, last=messages),
        window=batch,
        batch=batch,
        patience=30 * SECOND,
        clock=clock,
    )


def _consumer(
    liar: Liar, spool: Path, run: int, topics: int, group: int, refuse: int | None, clock: FakeClock
) -> Consumer:
    return Consumer(
        consumer=group,
        group=group,
        topics=np.arange(topics),
        connect=lambda: liar.receiver(f"group-{group}"),
        delivered=Spool(spool, DELIVERED, f"c{group:05d}"),
        bodies=Bodies(run),
        batch=8192,
        refuse=refuse,
        clock=clock,
    )

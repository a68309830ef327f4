"""Whether Brook's cost stays flat on SQLite: consuming at offset 10 k and 10 M, sending with and without a backlog.

    python bench/brook_flat.py [--directory DIR] [--seconds S] [--rounds N] [--far OFFSET]

With durability normal, so that the disk's syncs do not hide the difference. Both sides run right after each other in
each round; rates and ratios are the medians of the rounds.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from brook import Brook, Run

BODY, RUN, BATCH = 64, 1000, 1000
NEAR = 10_000


def filled(path: Path, messages: int) -> Brook:
    """A queue whose topic `t` has so many messages, and a group `g` at its start."""
    mq = Brook(f"sqlite:///{path}", durability="normal")
    (topic,) = mq.create_topics(["t"])
    run = Run(topic, RUN, os.urandom(BODY * RUN))
    for first in range(0, messages, RUN * 100):
        mq.append_runs([run] * min(100, (messages - first) // RUN))
    mq.subscribe("g")
    return mq


def rate(seconds: float, step: Callable[[], int]) -> float:
    """Messages a second."""
    begin, messages = time.perf_counter(), 0
    while (spent := time.perf_counter() - begin) < seconds:
        messages += step()
    return messages / spent


def consume_from(mq: Brook, offset: int, seconds: float) -> float:
    mq.reset("g", offset)

    def step() -> int:
        batch = mq.receive("g", max_messages=BATCH)
        mq.ack(batch)
        return len(batch.bodies)

    return rate(seconds, step)


def send(mq: Brook, seconds: float) -> float:
    bodies = [os.urandom(BODY)] * BATCH
    return rate(seconds, lambda: len(mq.append(["t"] * BATCH, bodies)))


def told(name: str, near: list[float], far: list[float]) -> str:
    ratio = statistics.median(b / a for a, b in zip(near, far, strict=True))
    rates = " and ".join(f"{statistics.median(each):,.0f}" for each in (near, far))
    return f"{name:46} {rates:>24} messages/s  ratio {ratio:.2f} (wanted 0.8)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, help="where the databases go; a temporary one by default")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each side and round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--far", type=int, default=10_000_000, help="the offset that is far (10,000,000)")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(dir=options.directory) as directory,
        filled(Path(directory) / "far.db", options.far + 3_000_000) as far,
        filled(Path(directory) / "near.db", NEAR) as near,
    ):
        reads = [[consume_from(far, at, options.seconds) for at in (NEAR, options.far)] for _ in range(options.rounds)]
        writes = [[send(mq, options.seconds) for mq in (near, far)] for _ in range(options.rounds)]
    names = f"consuming at offset {NEAR:,} and {options.far:,}", f"sending with no backlog and {options.far:,}"
    for name, rounds in zip(names, (reads, writes), strict=True):
        print(told(name, [a for a, _ in rounds], [b for _, b in rounds]))


if __name__ == "__main__":
    main()

"""What keeping the record costs: the same load with and without it, in turn, in one run.

    .venv/bin/python bench/recording.py [--messages 2000000] [--rounds 7]

Four producers send 128-byte bodies over 256 topics to Brook on SQLite, as the reboot plan does; with
the record, the scribe runs beside them. Prints the throughput of each round and the ratio of the medians.
"""

import argparse
import contextlib
import statistics
import tempfile
import time
from pathlib import Path

from ackworth.broker.brook_sqlite import BROKER
from ackworth.broker.contract import Place
from ackworth.load.worker import Order
from ackworth.run.crew import Crew
from ackworth.run.scribe import ScribeProcess

TOPICS = [f"topic-{i:03d}" for i in range(256)]
PRODUCERS = 4


def throughput(folder: Path, messages: int, durability: str, record: bool) -> float:
    place = Place(data=folder / "data", logs=folder / "logs")
    for path in (place.data, place.logs):
        path.mkdir(parents=True)
    address = BROKER.address({"database": place}, {"durability": durability})
    order = Order(
        role="",
        parent=0,
        driver="brook",
        address=address,
        topics=TOPICS,
        groups=["group"],
        run="00000000000000ff",
        seed=0,
        spool=str(folder / "spool") if record else None,
        sizes=[128],
        weights=[1.0],
        window=8192,
        batch=8192,
    )
    crew = Crew(place.logs, order)
    crew.prepare(30, lambda: time.sleep(0.005))
    with ScribeProcess(folder) if record else contextlib.nullcontext():
        crew.produce([[p, 0, 0, messages // PRODUCERS] for p in range(PRODUCERS)], None)
        began = time.monotonic()
        crew.go(0)
        while any(worker.running for worker in crew.workers):
            time.sleep(0.005)
        crew.look()
        return messages / (time.monotonic() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--durability", default="full", choices=("full", "normal", "off"))
    args = parser.parse_args()
    rates: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(args.rounds):
        for record in (turn % 2 == 0, turn % 2 == 1):  # neither always goes first
            with tempfile.TemporaryDirectory(dir=".") as folder:
                rates[record].append(throughput(Path(folder).resolve(), args.messages, args.durability, record))
        print(f"round {turn + 1}: with the record {rates[True][-1]:,.0f}/s, without {rates[False][-1]:,.0f}/s")
    on, off = statistics.median(rates[True]), statistics.median(rates[False])
    print(f"median: with {on:,.0f}/s, without {off:,.0f}/s; ratio {on / off:.3f} (at least 0.95 is wanted)")


if __name__ == "__main__":
    main()

"""Contests: in each round all run right after each other; rates and ratios are the medians of the rounds."""

import itertools
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Generic, NamedTuple, TypeVar

Where = TypeVar("Where")


class Contest(NamedTuple, Generic[Where]):
    name: str
    run: Callable[[Where], float]  # messages a second
    against: str | None = None  # the contest to be compared with
    wanted: float | None = None  # the ratio to reach


def hold(field: Sequence[Contest[Where]], rounds: int, new_place: Callable[[], AbstractContextManager[Where]]) -> None:
    """new_place: where a contest begins with nothing there."""
    rates: dict[str, list[float]] = {contest.name: [] for contest in field}
    for _, contest in itertools.product(range(rounds), field):
        with new_place() as place:
            rates[contest.name].append(contest.run(place))
    for contest in field:
        print(_line(contest, rates))


def _line(contest: Contest[Where], rates: dict[str, list[float]]) -> str:
    name, _, against, wanted = contest
    line = f"{name:38} {statistics.median(rates[name]):12,.0f} messages/s"
    if against is None:
        return line
    ratio = statistics.median(a / b for a, b in zip(rates[name], rates[against], strict=True))
    return f"{line}  {ratio:5.2f} x {against}" + (f" (wanted {wanted})" if wanted else "")


def in_threads(seconds: float, threads: int, new_sender: Callable[[], Callable[[], object]]) -> float:
    """Messages a second of threads that each send one after the other."""
    counts, ready = [0] * threads, threading.Barrier(threads + 1)

    def work(thread: int) -> None:
        send = new_sender()
        ready.wait()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            send()
            counts[thread] += 1

    workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
    for worker in workers:
        worker.start()
    ready.wait()
    begin = time.perf_counter()
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - begin)

"""A producer keeps its window and its pace, and records every message before and after the broker's word."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ackworth.driver.contract import TIMED_OUT, Answers, ConnectionLost, Outgoing, answered
from ackworth.history.schema import OUTCOME, SENT, Table
from ackworth.history.spool import Spool, chunks, read_chunk
from ackworth.load.body import Bodies
from ackworth.load.pacing import AsFastAsPossible, AtRate, Pace
from ackworth.load.producer import Producer, Quota
from ackworth.model.clock import SECOND
from ackworth.model.outcome import Outcome
from ackworth.testing.clock import FakeClock

NOTHING = answered(np.empty(0, np.int64), 0)


class Scripted:
    """A sender that answers what its test says."""

    def __init__(self) -> None:
        self.sent: list[Outgoing] = []
        self.to_say: list[Answers | Exception] = []
        self.closed = 0

    def send(self, batch: Outgoing) -> None:
        self.sent.append(batch)

    def answers(self, wait: float) -> Answers:
        said = self.to_say.pop(0) if self.to_say else NOTHING
        if isinstance(said, Exception):
            raise said
        return said

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def sender() -> Scripted:
    return Scripted()


@pytest.fixture
def make(tmp_path: Path, sender: Scripted) -> Callable[..., Producer]:
    def build(clock: FakeClock | None = None, pace: Pace | None = None, **changes: Any) -> Producer:
        settings: dict[str, Any] = {"window": 8, "batch": 4, "quota": Quota(base=0, first=0, last=100), **changes}
        return Producer(
            producer=3,
            connect=lambda: sender,
            sent=Spool(tmp_path, SENT, "p3"),
            outcomes=Spool(tmp_path, OUTCOME, "p3"),
            bodies=Bodies(1),
            topics=np.arange(2),
            sizes=lambda count: np.full(count, 64),
            pace=pace or AsFastAsPossible(),
            patience=SECOND,
            clock=clock or FakeClock(),
            **settings,
        )

    return build


def rows(directory: Path, table: Table, *names: str) -> list[tuple[int, ...]]:
    found = [read_chunk(path, table) for _, _, path in chunks(directory, table)]
    return [tuple(int(v) for v in row) for chunk in found for row in zip(*(chunk[n] for n in names), strict=True)]


def test_the_window_holds_until_answers_come(tmp_path: Path, make: Callable[..., Producer], sender: Scripted) -> None:
    producer = make()
    for _ in range(5):
        producer.step(0)
    assert [(b.first_seq, len(b.sizes)) for b in sender.sent] == [(0, 4), (4, 4)]
    sender.to_say.append(answered(np.array([1, 0, 2, 5]), Outcome.ACKED))
    producer.step(0)
    producer.step(0)
    assert [b.first_seq for b in sender.sent] == [0, 4, 8]
    assert rows(tmp_path, OUTCOME, "seq", "outcome") == [(1, 1), (0, 1), (2, 1), (5, 1)]
    assert rows(tmp_path, SENT, "seq", "topic") == [(i, i % 2) for i in range(12)]


def test_one_straggler_cannot_be_overtaken_for_ever(make: Callable[..., Producer], sender: Scripted) -> None:
    producer = make(window=4, batch=1)
    producer.step(0)  # seq 0 is never answered
    for _ in range(100):
        producer.step(0)
        if sender.sent[-1].first_seq:
            sender.to_say = [answered(np.array([sender.sent[-1].first_seq]), Outcome.ACKED)]
            sender.sent[-1] = replace(sender.sent[-1], first_seq=0)  # each is answered once
    assert len(sender.sent) == 8


def test_a_lost_connection_makes_unknown_what_was_not_answered_before(
    tmp_path: Path, make: Callable[..., Producer], sender: Scripted
) -> None:
    producer = make()
    producer.step(0)
    end = ConnectionLost("gone", 2)
    end.answers = answered(np.array([5]), Outcome.ACKED)  # the last that the broker said
    sender.to_say += [answered(np.array([2]), Outcome.ACKED), end]
    producer.step(0)
    producer.step(0)
    assert sorted(rows(tmp_path, OUTCOME, "seq", "outcome", "reason")) == [
        (seq, *((1, 0) if seq in (2, 5) else (3, 2))) for seq in range(8)
    ]
    assert sender.closed == 1


def test_no_answer_in_time_is_unknown(tmp_path: Path, make: Callable[..., Producer], sender: Scripted) -> None:
    clock = FakeClock()
    producer = make(clock)
    producer.step(0)
    clock.sleep_until(clock.now() + 2 * SECOND)
    producer.step(0)
    assert set(rows(tmp_path, OUTCOME, "outcome", "reason")) == {(Outcome.UNKNOWN, TIMED_OUT)}


def test_only_an_answer_ends_the_trouble_of_one_that_got_none(make: Callable[..., Producer], sender: Scripted) -> None:
    clock = FakeClock()
    producer = make(clock)
    producer.step(0)
    assert producer.trouble is None
    for _ in range(3):  # it connects and sends again each time
        clock.sleep_until(clock.now() + 2 * SECOND)
        producer.step(0)
        assert producer.trouble == "no answer in time"
    producer.step(0)
    sender.to_say = [answered(np.array([sender.sent[-1].first_seq]), Outcome.ACKED)]
    producer.step(0)
    assert producer.trouble is None


def test_a_slow_broker_that_answers_is_waited_for(make: Callable[..., Producer], sender: Scripted) -> None:
    clock = FakeClock()
    producer = make(clock, batch=8)
    producer.step(0)
    for seq in range(8):  # the last one takes four times its patience
        clock.sleep_until(clock.now() + SECOND // 2)
        sender.to_say = [answered(np.array([seq]), Outcome.ACKED)]
        producer.stopping = True
        producer.step(0)
    assert producer.finished and not sender.closed


def test_open_loop_sends_what_is_due_and_says_how_late(
    tmp_path: Path, make: Callable[..., Producer], sender: Scripted
) -> None:
    clock = FakeClock(start=0, step=0)
    producer = make(clock, AtRate(0, 10.0), window=100, batch=100)
    producer.step(0)
    assert [len(b.sizes) for b in sender.sent] == [1]  # the first is due at once
    assert producer.next_at() == SECOND // 10
    clock.sleep_until(SECOND)
    producer.step(0)
    assert [len(b.sizes) for b in sender.sent] == [1, 10]
    late = [row[0] for row in rows(tmp_path, SENT, "late")]
    assert late == [0, *(SECOND - i * SECOND // 10 for i in range(1, 11))]
    sender.to_say.append(answered(np.arange(11), Outcome.ACKED))
    clock.sleep_until(2 * SECOND)
    producer.step(0)
    latency = rows(tmp_path, OUTCOME, "latency", "late")
    assert latency[0] == (2 * SECOND, 0) and latency[10] == (SECOND, 0)


def test_what_is_due_within_a_millisecond_is_sent_together(
    tmp_path: Path, make: Callable[..., Producer], sender: Scripted
) -> None:
    """Four of them at 4,000 a second, when the fourth is due."""
    clock = FakeClock(start=0, step=0)
    producer = make(clock, AtRate(0, 4000.0), window=100, batch=100, quota=Quota(base=0, first=0, last=6))
    producer.step(0)
    assert (sender.sent, producer.next_at()) == ([], 750_000)
    for _ in range(2):
        clock.sleep_until(producer.next_at())
        producer.step(0)
    assert [len(b.sizes) for b in sender.sent] == [4, 2]  # the quota ends within the second four
    late = [row[0] for row in rows(tmp_path, SENT, "late")]
    assert late == [750_000, 500_000, 250_000, 0, 750_000, 500_000]


def test_after_a_restart_it_goes_on_where_it_was(make: Callable[..., Producer], sender: Scripted) -> None:
    clock = FakeClock(start=SECOND, step=0)
    producer = make(clock, AtRate(0, 10.0), quota=Quota(base=0, first=7, last=9))
    producer.step(0)
    assert [(b.first_seq, len(b.sizes)) for b in sender.sent] == [(7, 2)]
    assert not producer.sending and not producer.finished
    sender.to_say.append(answered(np.array([7, 8]), Outcome.ACKED))
    producer.step(0)
    assert producer.finished


def test_asked_to_stop_it_waits_for_what_is_in_flight(make: Callable[..., Producer], sender: Scripted) -> None:
    producer = make()
    producer.step(0)
    producer.stopping = True
    producer.step(0)
    assert len(sender.sent) == 1 and not producer.finished
    sender.to_say.append(answered(np.arange(4), Outcome.REFUSED, 1))
    producer.step(0)
    assert producer.finished

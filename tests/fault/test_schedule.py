"""Faults strike when they are due: at a time, a count, a share, a rate; again; and by a chance that repeats itself."""

from typing import Any

from ackworth.fault.schedule import Progress, Schedule
from ackworth.plan.model import FaultPlan, Moment, Phase, Workload

COUNTED = Workload(phases=(Phase(name="send", messages=1000),))
TIMED = Workload(phases=(Phase(name="send", duration=60.0),))


def strikes(fault: FaultPlan, workload: Workload = TIMED, seed: int = 0, **at: Any) -> list[float]:
    """The seconds of all strikes, in steps of a tenth; 10 messages and 100 acks a second a second."""
    schedule = Schedule([fault], workload, seed)
    found = []
    for tenth in range(601):
        seconds = tenth / 10
        progress = Progress(seconds=seconds, sent=tenth * 10, acked_per_second=tenth * 10.0)
        if schedule.due(progress):
            found.append(seconds)
    assert schedule.outstanding() == ([] if len(found) == (fault.times or 1) else [fault])
    return found


def test_at_a_time() -> None:
    assert strikes(FaultPlan(kind="kill", at=Moment(seconds=5.0))) == [5.0]


def test_at_a_count() -> None:
    assert strikes(FaultPlan(kind="kill", at=Moment(messages=500))) == [5.0]


def test_at_a_share_of_the_messages() -> None:
    assert strikes(FaultPlan(kind="kill", at=Moment(share=0.8)), COUNTED) == [8.0]


def test_at_a_share_of_the_time() -> None:
    assert strikes(FaultPlan(kind="kill", at=Moment(share=1.0)), TIMED) == [60.0]


def test_at_a_rate() -> None:
    assert strikes(FaultPlan(kind="kill", at=Moment(rate=250.0))) == [2.5]


def test_repeated() -> None:
    fault = FaultPlan(kind="kill", at=Moment(messages=500), every=10.0, times=3)
    assert strikes(fault) == [5.0, 15.0, 25.0]


def test_random_but_the_same_for_the_same_seed() -> None:
    fault = FaultPlan(kind="kill", at=Moment(seconds=5.0), every=15.0, times=3, within=9.0)
    one, again, other = strikes(fault, seed=1), strikes(fault, seed=1), strikes(fault, seed=2)
    assert one == again != other
    for base, strike in zip((5.0, 20.0, 35.0), one, strict=True):
        assert base <= strike <= base + 9.1


def test_a_fault_that_never_became_due_is_outstanding() -> None:
    assert strikes(FaultPlan(kind="kill", at=Moment(seconds=99.0))) == []

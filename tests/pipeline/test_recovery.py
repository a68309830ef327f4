"""What came after a fault, and what only looks as if it did."""

import dataclasses
from pathlib import Path

import pytest

from ackworth.history.meta import Trial
from ackworth.model.outcome import Outcome
from ackworth.model.result import FaultResult
from ackworth.pipeline.trial import judge_trial
from ackworth.testing.engine import Inline
from ackworth.testing.histories import Answer, Delivered, History, Mark, Sent, trial, write_history

SECOND = 10**9
LET_GO = Mark("ready", "kill", 4 * SECOND, 5 * SECOND)


def recovery(
    tmp_path: Path, *acked: float, detail: str = "", ready: Mark = LET_GO, sent: float = 9, of: Trial | None = None
) -> FaultResult:
    """Killed from 1 to 2 s; acks and deliveries come at these seconds."""
    times = [int(t * SECOND) for t in acked]
    history = History(
        trial=of or trial(),
        sent=[Sent(0, 0, 0), Sent(0, 1, int(sent * SECOND))],
        outcome=[Answer(0, seq, Outcome.ACKED, t) for seq, t in enumerate(times)],
        delivered=[Delivered(0, seq, t) for seq, t in enumerate(times)],
        mark=[Mark("fault", "kill", SECOND, 2 * SECOND, detail=detail), ready],
    )
    [found] = judge_trial(write_history(tmp_path, history), Inline())["faults"]
    return found


def test_what_was_under_way_is_no_recovery(tmp_path: Path) -> None:
    """Read at 3 s, while the node was down: it had been sent before the kill."""
    found = recovery(tmp_path, 3, 4.5)
    assert (found["first_ack"], found["first_delivery"], found["ready"]) == (3.5, 3.5, 5.0)
    assert recovery(tmp_path / "late", 2.5, 3)["first_ack"] is None


@pytest.mark.parametrize("detail", ['{"whole": false}', '{"of": "consumer"}'])
def test_where_some_go_on_what_comes_meanwhile_counts(tmp_path: Path, detail: str) -> None:
    assert recovery(tmp_path, 3, 4.5, detail=detail)["first_ack"] == 2.0


def test_a_broker_of_the_users_may_come_back_by_itself(tmp_path: Path) -> None:
    theirs = dataclasses.replace(trial(), broker={"kind": "test", "attached": "redis://broker.example"})
    assert recovery(tmp_path, 3, 4.5, of=theirs)["first_ack"] == 2.0


def test_a_record_that_does_not_say_when_the_node_was_let_go(tmp_path: Path) -> None:
    only_ready = Mark("ready", "kill", 5 * SECOND, 5 * SECOND)
    assert recovery(tmp_path, 3, 4.5, ready=only_ready)["first_ack"] == 2.0


@pytest.mark.parametrize(("sent", "asked"), [(3, False), (4, True)])
def test_nobody_can_be_answered_who_did_not_ask(tmp_path: Path, sent: float, asked: bool) -> None:
    assert recovery(tmp_path, 0.5, sent=sent)["asked"] is asked

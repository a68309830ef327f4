"""Where losses lie: ranges, places, the fault that followed."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from ackworth.model.outcome import Outcome
from ackworth.model.result import Loss
from ackworth.pipeline.trial import judge_trial
from ackworth.testing.engine import Inline
from ackworth.testing.histories import Answer, Delivered, History, Mark, Sent, trial, write_history

SECOND = 10**9
FAULT = Mark("fault", "kill", 6 * SECOND, 6 * SECOND)


def loss(tmp_path: Path, *lost: tuple[int, int], sent: int = 10, marks: Sequence[Mark] = (FAULT,)) -> Loss:
    """Two producers send a message every second, and some are lost."""
    ids = [(producer, seq) for producer in range(2) for seq in range(sent)]
    history = History(
        trial=trial(producers=2, topics=3),
        sent=[Sent(producer, seq, seq * SECOND, topic=seq % 3) for producer, seq in ids],
        outcome=[Answer(producer, seq, Outcome.ACKED, seq * SECOND + 1) for producer, seq in ids],
        delivered=[
            Delivered(producer, seq, 20 * SECOND, topic=seq % 3)
            for producer, seq in sorted(ids, key=lambda i: i[1])
            if (producer, seq) not in lost
        ],
        mark=marks,
    )
    result = judge_trial(write_history(tmp_path, history, rows_per_group=-(-sent // 3)), Inline(4))
    assert result["notes"] == []
    return result["losses"][0]


def test_a_loss_is_placed(tmp_path: Path) -> None:
    assert loss(tmp_path, (0, 4), (0, 5), (1, 5)) == {
        "group": "all",
        "count": 3,
        "first": "0/4",
        "last": "1/5",
        "ranges": [[0, 4, 5], [1, 5, 5]],
        "ranges_total": 2,
        "holes": 0,
        "sent_by": [10, 10],
        "place": "tail",
        "topics": 2,
        "fault": "kill",
        "seconds_before_fault": [1 - 1e-9, 2 - 1e-9],
    }


@pytest.mark.parametrize(
    ("lost", "place"),
    [
        ([(0, 5), (1, 4), (1, 5)], "tail"),  # what came after the fault does not matter
        ([(0, 0), (0, 1), (1, 0)], "prefix"),
        ([(0, 2), (0, 3)], "middle"),
        ([(0, 2), (0, 4)], "scattered"),
        ([(0, 0), (1, 5)], "scattered"),  # the producers do not agree
        ([(p, seq) for p in range(2) for seq in range(6)], "all"),
        ([*((0, seq) for seq in range(6)), (1, 5)], "tail"),  # a producer that lost all agrees with any
    ],
)
def test_places(tmp_path: Path, lost: list[tuple[int, int]], place: str) -> None:
    assert loss(tmp_path, *lost)["place"] == place


def test_a_loss_that_no_fault_followed(tmp_path: Path) -> None:
    found = loss(tmp_path, (0, 9))
    assert found["fault"] is None
    assert found["seconds_before_fault"] is None
    assert found["place"] == "tail"


def test_each_loss_is_timed_by_the_fault_that_followed_it(tmp_path: Path) -> None:
    """Two kills, each of which took the last second: no loss lies further than that before its own kill."""
    kills = [Mark("fault", "kill", t * SECOND, t * SECOND) for t in (3, 8)]
    found = loss(tmp_path, (0, 2), (1, 2), (0, 7), marks=kills)
    assert found["seconds_before_fault"] == [1 - 1e-9, 1 - 1e-9]
    assert (found["fault"], found["holes"]) == ("kill", 0)


@pytest.mark.parametrize(
    ("lost", "holes"),
    [
        ([(0, 4), (0, 5), (1, 5)], 0),  # tails
        ([(0, 0), (1, 5)], 1),  # a prefix, and a tail
        ([(0, 1), (0, 3), (0, 5), (1, 4)], 3),
        ([(p, seq) for p in range(2) for seq in range(6)], 0),  # all
    ],
)
def test_a_hole_has_something_behind_it_that_was_kept(tmp_path: Path, lost: list[tuple[int, int]], holes: int) -> None:
    assert loss(tmp_path, *lost)["holes"] == holes


def test_an_ack_that_was_under_way_when_the_fault_struck_is_read_after_it(tmp_path: Path) -> None:
    """The strike is complete at 6 s, the node is let go at 8 s: what was acked at 7 s came from before."""
    marks = [Mark("fault", "kill", 5 * SECOND, 6 * SECOND), Mark("ready", "kill", 8 * SECOND, 9 * SECOND)]
    found = loss(tmp_path, (0, 5), (0, 6), (0, 7), marks=marks)
    assert (found["fault"], found["seconds_before_fault"]) == ("kill", [0.0, 1 - 1e-9])


def test_ranges_end_where_a_producer_ends(tmp_path: Path) -> None:
    found = loss(tmp_path, (0, 9), (1, 0))
    assert found["ranges"] == [[0, 9, 9], [1, 0, 0]]


def test_only_the_first_hundred_ranges_are_listed(tmp_path: Path) -> None:
    found = loss(tmp_path, *((0, seq) for seq in range(0, 300, 2)), sent=400)
    assert found["ranges"] == [[0, seq, seq] for seq in range(0, 200, 2)]
    assert (found["ranges_total"], found["last"]) == (150, "0/298")

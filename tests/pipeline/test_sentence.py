"""The verdict in words, at the edges of number."""

from typing import Any

import pytest

from ackworth.model.result import TrialResult
from ackworth.pipeline.sentence import sentence
from ackworth.testing.results import broken_trial, held_trial


def trial(made: TrialResult, *groups: tuple[int, int], acked: int, faults: list[float] | None = None) -> TrialResult:
    """Groups are what they must have and what they lost; faults are when they began."""
    account = {**made["groups"][0], "duplicates": {"extra": 0}}
    found: Any = [
        {**account, "name": f"group-{n}", "expected": expected, "lost": lost}
        for n, (expected, lost) in enumerate(groups)
    ]
    struck: Any = [{**made["faults"][0], "begin": begin} for begin in faults or ()]
    return {**made, "groups": found, "account": {**made["account"], "acked": acked, "recovered": 0}, "faults": struck}


@pytest.mark.parametrize(
    ("groups", "acked", "said"),
    [
        ([(1, 0)], 1, "the 1 acked message was delivered"),
        ([(2, 0)], 2, "all 2 acked messages were delivered"),
        ([(1_000, 0)] * 3, 1_000, "all 1,000 acked messages were delivered to all 3 groups"),
        ([(4, 0), (6, 0)], 10, "all 10 acked messages were delivered to every group that reads them"),
        ([(3, 1)], 3, "1 of 3 acked messages was lost, which was allowed,"),
    ],
)
def test_what_held(groups: list[tuple[int, int]], acked: int, said: str) -> None:
    assert sentence(trial(held_trial(), *groups, acked=acked)) == f"Held: {said}; nothing doubled."


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ([(1_234_567, 1_000)], "1,000 of 1,234,567 acked messages were lost"),
        ([(8, 0), (8, 2)], "2 of 8 acked messages were lost to group-1"),
        ([(8, 1), (6, 6)], "1 of 8 acked messages was lost to group-0, 6 of 6 to group-1"),
        (
            [(8, 2)] * 4,
            "2 of 8 acked messages were lost to group-0, 2 of 8 to group-1, 2 of 8 to group-2, some to 1 more group",
        ),
    ],
)
def test_what_was_lost(groups: list[tuple[int, int]], said: str) -> None:
    assert sentence(trial(broken_trial(), *groups, acked=8)) == f"Broken: {said}."


def test_one_strike_may_befall_several_nodes() -> None:
    made = trial(held_trial(), (2, 0), acked=2, faults=[1.0, 1.0, 1.0])
    assert "were delivered after 1 power cut;" in sentence(made)
    assert "were delivered after 2 power cuts;" in sentence(trial(held_trial(), (2, 0), acked=2, faults=[1.0, 2.0]))


@pytest.mark.parametrize(("recovered", "said"), [(1, "1 unanswered one"), (2_000, "2,000 unanswered ones")])
def test_what_several_groups_got_unanswered_was_recovered_once(recovered: int, said: str) -> None:
    made = trial(held_trial(), (2, 0), (2, 0), acked=2)
    made["account"]["recovered"] = recovered
    assert f"; {said} recovered, nothing doubled." in sentence(made)

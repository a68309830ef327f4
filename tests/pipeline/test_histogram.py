"""Histograms add up exactly and are off by little."""

import math
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ackworth.pipeline.histogram import SIZE, Counted, add_up, percentile, places, tally

VALUES = st.lists(st.integers(0, 2**62), min_size=1)


def _one_second(values: list[int]) -> Counted:
    return Counted(np.array([0]), np.array([len(values)]))


@given(VALUES, st.sampled_from([1, 5_000, 9_900, 9_999, 10_000]))
def test_a_percentile_is_off_by_less_than_half_a_percent(values: list[int], share: int) -> None:
    found = percentile(tally(np.array(values), _one_second(values)), share)
    exact = sorted(values)[-(-len(values) * share // 10_000) - 1]
    assert found is not None
    assert math.isclose(found, exact, rel_tol=0.004)


@given(VALUES, VALUES)
def test_histograms_add_up(some: list[int], others: list[int]) -> None:
    apart = add_up([tally(np.array(some), _one_second(some)), tally(np.array(others), _one_second(others))])
    together = tally(np.array(some + others), _one_second(some + others))
    assert apart.numbers.tolist() == together.numbers.tolist()
    assert apart.counts.tolist() == together.counts.tolist()


def test_censored_values_are_slower_than_all() -> None:
    counted = tally(np.array([10, 20, 30]), _one_second([10, 20, 30]))
    assert percentile(counted, 5_000, censored=3) is not None
    assert percentile(counted, 6_000, censored=3) is None


def test_what_is_not_positive_counts_as_zero() -> None:
    assert places(np.array([-5, 0])).tolist() == [0, 0]
    assert percentile(tally(np.array([0]), _one_second([0])), 5_000) == 0.0


def test_all_places_fit() -> None:
    assert places(np.array([2**63 - 1]))[0] < SIZE


@given(st.dictionaries(st.integers(0, 10**6), st.lists(st.integers(0, 2**40), min_size=1), min_size=1))
def test_seconds_are_kept_apart(seconds: dict[int, list[int]]) -> None:
    in_time = dict(sorted(seconds.items()))
    values = np.array([value for some in in_time.values() for value in some])
    per_second = Counted(np.array(list(in_time)), np.array([len(some) for some in in_time.values()]))
    counted = tally(values, per_second)
    expected = Counter(s * SIZE + int(p) for s, some in in_time.items() for p in places(np.array(some)))
    assert dict(zip(counted.numbers.tolist(), counted.counts.tolist(), strict=True)) == dict(expected)

"""Histograms add up exactly and are off by little."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ackworth.pipeline import histogram
from ackworth.pipeline.histogram import add_up, percentile, places, tally

VALUES = st.lists(st.integers(0, 2**62), min_size=1)


@given(VALUES, st.sampled_from([1, 5_000, 9_900, 9_999, 10_000]))
def test_a_percentile_is_off_by_less_than_half_a_percent(values: list[int], share: int) -> None:
    found = percentile(tally(places(np.array(values))), share)
    exact = sorted(values)[-(-len(values) * share // 10_000) - 1]
    assert found is not None
    assert math.isclose(found, exact, rel_tol=0.004)


@given(VALUES, VALUES)
def test_histograms_add_up(some: list[int], others: list[int]) -> None:
    apart = add_up([tally(places(np.array(some))), tally(places(np.array(others)))])
    together = tally(places(np.array(some + others)))
    assert apart.numbers.tolist() == together.numbers.tolist()
    assert apart.counts.tolist() == together.counts.tolist()


def test_censored_values_are_slower_than_all() -> None:
    counted = tally(places(np.array([10, 20, 30])))
    assert percentile(counted, 5_000, censored=3) is not None
    assert percentile(counted, 6_000, censored=3) is None


def test_what_is_not_positive_counts_as_zero() -> None:
    assert places(np.array([-5, 0])).tolist() == [0, 0]
    assert percentile(tally(places(np.array([0]))), 5_000) == 0.0


def test_all_places_fit() -> None:
    assert places(np.array([2**63 - 1]))[0] < histogram.SIZE

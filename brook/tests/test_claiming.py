"""The arithmetic of claims."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brook import claiming
from brook.claiming import Range, Spread, without

ranges = st.lists(st.builds(Range, st.integers(1, 2), st.integers(0, 20), st.integers(1, 8)), max_size=6)


def messages(some: list[Range]) -> set[tuple[int, int]]:
    return {(each.topic, offset) for each in some for offset in range(each.first, each.end)}


@given(st.lists(st.integers(1, 5), max_size=5), ranges)
def test_what_is_left(lengths: list[int], gone: list[Range]) -> None:
    held = [Range(1 + n % 2, 6 * n, length) for n, length in enumerate(lengths)]
    left = without(held, gone)
    assert messages(left) == messages(held) - messages(gone)
    assert sum(each.messages for each in left) == len(messages(left))
    assert all(each.messages for each in left)


@given(ranges, ranges)
def test_those_that_touch_are_those_that_overlap(some: list[Range], others: list[Range]) -> None:
    spread = Spread(some)
    for other in others:
        assert list(spread.touching(other)) == sorted(each for each in some if each.overlap(other))


def test_many_cuts_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    overlap = Range.overlap

    def counted(self: Range, other: Range) -> Range | None:
        nonlocal looks
        looks += 1
        return overlap(self, other)

    monkeypatch.setattr(claiming.Range, "overlap", counted)
    assert without([Range(1, n, 1) for n in range(2000)], [Range(1, n, 1) for n in range(2000)]) == []
    assert looks == 2000  # not one with each
    looks = 0
    left = without([Range(1, 0, 2000)], [Range(1, n, 1) for n in range(0, 2000, 2)])
    assert left == [Range(1, n, 1) for n in range(1, 2000, 2)]
    assert looks == 1000

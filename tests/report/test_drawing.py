"""What charts are made of: scales, thinned series, labels and bars."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackworth.report.chart import Line, Span, TimeChart, time_chart, time_domain
from ackworth.report.labels import beside, in_rows
from ackworth.report.pictures import SLIVER, visible_widths
from ackworth.report.scale import Clock, Linear, Logarithmic
from ackworth.report.text import count
from ackworth.report.thin import bins, extremes


def test_linear_axis_ends_at_a_round_number() -> None:
    ticks = Linear.over([3, None, 66_456]).ticks()
    assert [(tick.place, tick.label) for tick in ticks] == [
        (0, "0"),
        (0.25, "20k"),
        (0.5, "40k"),
        (0.75, "60k"),
        (1, "80k"),
    ]


def test_axis_of_nothing_still_is_an_axis() -> None:
    assert Linear.over([]).place(0) == 0
    assert Linear.over([0, 0]).top >= 1
    assert [tick.label for tick in Logarithmic.over([None]).ticks()] == ["1 ns", "10 ns"]


def test_logarithmic_axis_has_a_gridline_for_every_decade() -> None:
    scale = Logarithmic.over([2e6, 1.8e10])
    assert [tick.label for tick in scale.ticks()] == ["1 ms", "10 ms", "100 ms", "1 s", "10 s", "100 s"]
    assert scale.place(1e7) == pytest.approx(0.2)
    assert scale.place(0) == 0


@pytest.mark.parametrize(
    ("end", "labels"),
    [
        (30, ["0 s", "5 s", "10 s", "15 s", "20 s", "25 s", "30 s"]),
        (300, ["0:00", "1:00", "2:00", "3:00", "4:00", "5:00"]),
        (36_000, ["0:00:00", "2:00:00", "4:00:00", "6:00:00", "8:00:00", "10:00:00"]),
    ],
)
def test_time_axis_speaks_seconds_then_minutes_then_hours(end: int, labels: list[str]) -> None:
    assert [tick.label for tick in Clock(end).ticks(6)] == labels


@given(st.lists(st.none() | st.integers(0, 10**9), min_size=1, max_size=3000), st.integers(10, 600))
def test_thinning_keeps_the_lowest_and_the_highest_and_the_limit(values: list[int | None], limit: int) -> None:
    kept = [index for indexes in bins(len(values), limit) for index in extremes(values, indexes)]
    known = [value for value in values if value is not None]
    drawn = [value for index in kept if (value := values[index]) is not None]
    assert kept == sorted(kept)
    assert len(kept) <= limit
    assert (min(drawn), max(drawn)) == (min(known), max(known)) if known else drawn == []


def _chart(values: list[int | None], limit: int = 600, faults: tuple[Span, ...] = ()) -> str:
    t = list(range(len(values)))
    line = Line("acked", "acked", values)
    return time_chart(
        TimeChart(
            title="Throughput",
            summary="In words.",
            clock=time_domain(t, faults),
            t=t,
            lines=[line],
            scale=Linear.over(values),
            show=count,
            phases=(),
            faults=faults,
            limit=limit,
        )
    )


def _paths(chart: str) -> list[str]:
    return re.findall(r'<path class="line acked" d="([^"]*)"', chart)


def test_a_line_is_broken_where_nothing_is_known() -> None:
    (path,) = _paths(_chart([1, 2, None, 2, 1]))
    assert path.count("M") == 2
    assert path.count("L") == 2


def test_a_lone_value_is_as_wide_as_its_second() -> None:
    (path,) = _paths(_chart([None, 1, None, None]))
    assert path == "M250.0 0.0h250.0"


def test_readings_of_a_thinned_chart_tell_lowest_and_highest() -> None:
    chart = _chart([1, 9, 5, 5], limit=2)
    assert 'data-values="1 – 9"' in chart
    assert 'data-values="0 ns – 3.00 s"' in chart
    assert 'data-values="1|9|5|5"' in _chart([1, 9, 5, 5])


def test_a_chart_says_itself_in_words() -> None:
    assert 'role="img" aria-label="Throughput. In words."' in _chart([1])


def test_faults_that_are_too_many_to_name_are_counted() -> None:
    few = _chart([1] * 60, faults=(Span("kill", 5, 6), Span("pause", 50, 51)))
    assert few.count('class="fault-name"') == 2
    many = _chart([1] * 60, faults=tuple(Span("kill", s, s + 0.5) for s in range(60)))
    assert re.findall(r'class="fault-name">([^<]*)<', many) == ["60 × kill"]


def test_labels_take_another_row_rather_than_lie_on_each_other() -> None:
    placed = in_rows([beside("power-cut", 0.1), beside("pause", 0.12), beside("kill", 0.9), beside("kill", 0.91)], 2)
    assert [(label.text, label.row, label.anchor) for label in placed] == [
        ("power-cut", 0, "start"),
        ("pause", 1, "start"),
        ("kill", 0, "end"),
        ("kill", 1, "end"),
    ]
    assert in_rows([beside("a", 0.1), beside("b", 0.1)], 1) == [beside("a", 0.1)]


def test_one_message_in_a_million_is_seen_in_a_bar() -> None:
    widths = visible_widths([999_999, 1, 0])
    assert sum(widths) == pytest.approx(1)
    assert widths[1] == pytest.approx(SLIVER, rel=0.01)
    assert widths[2] == 0

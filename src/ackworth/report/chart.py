"""A chart over time, as SVG that keeps its text size at any width.

Horizontal places are percentages and vertical ones pixels, so the page can stretch a chart without
stretching its text; only the lines live in a nested drawing that is stretched. The legend carries the
values of every bin: the script shows those under the pointer, in the place where the legend stands.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from ackworth.report.labels import Label, beside, in_rows, shorten, width
from ackworth.report.markup import Html, join, tag
from ackworth.report.scale import Clock, Scale, Tick
from ackworth.report.text import seconds
from ackworth.report.thin import Values, bins, extremes

PHASE_LANE = 22
FAULT_ROW = 17
FAULT_ROWS = 3
MANY_FAULTS = 20  # more of them are drawn faintly, lest they hide the lines
AXIS = 24
DRAWN = 1000  # units of the stretched drawing's width


@dataclass(frozen=True)
class Line:
    name: str
    style: str  # class of the stylesheet
    values: Values


@dataclass(frozen=True)
class Span:
    name: str
    begin: float
    end: float


@dataclass(frozen=True, kw_only=True)
class TimeChart:
    title: str
    summary: str  # the chart in words
    clock: Clock
    t: Sequence[float]  # where each value begins to count
    lines: Sequence[Line]
    scale: Scale
    show: Callable[[float], str]
    phases: Sequence[Span]
    faults: Sequence[Span]
    limit: int  # points a line
    height: int = 190
    intervals: int = 6  # of the axis of time, at most

    @property
    def bins(self) -> list[range]:
        return bins(len(self.t), self.limit)


def time_chart(chart: TimeChart) -> Html:
    labels = _fault_labels(chart)
    head = PHASE_LANE * bool(chart.phases)
    top = head + FAULT_ROW * (1 + max((label.row for label in labels), default=-1)) + 8
    plot = tag(
        "svg",
        _phases(chart, top),
        _grid(chart, top),
        _faults(chart, labels, head, top),
        _drawing(chart, top),
        _time_axis(chart.clock.ticks(chart.intervals), top + chart.height),
        tag("line", class_="cross", x1=0, x2=0, y1=top, y2=top + chart.height),
        class_="plot",
        height=top + chart.height + AXIS,
        role="img",
        aria_label=f"{chart.title}. {chart.summary}",
    )
    frame = tag("div", _value_axis(chart, top), plot, class_="frame")
    caption = tag("figcaption", tag("h4", chart.title), tag("p", chart.summary))
    return tag("figure", caption, _legend(chart), frame, class_="chart", data_x=_places(chart))


def time_domain(t: Sequence[float], spans: Sequence[Span], step: float = 1) -> Clock:
    ends = [moment + step for moment in t] + [span.end for span in spans]
    return Clock(max(ends, default=0) or 1)


def _phases(chart: TimeChart, top: int) -> Html:
    places = [(chart.clock.place(p.begin), chart.clock.place(p.end)) for p in chart.phases]
    bands = [
        tag(
            "rect",
            x=_percent(begin),
            width=_percent(end - begin),
            y=0,
            height=top + chart.height,
            class_=f"phase {odd}",
        )
        for (begin, end), odd in zip(places, ("", "odd") * len(places), strict=False)
    ]
    names = [_centred(p.name, *place) for p, place in zip(chart.phases, places, strict=True)]
    return join(*bands, *(_text(label, 15, "phase-name") for label in in_rows([n for n in names if n], 1)))


def _centred(name: str, begin: float, end: float) -> Label | None:
    text = shorten(name)
    room = width(text) / 2
    middle = (begin + end) / 2
    return Label(text, middle - room, middle + room, "middle") if 2 * room <= end - begin else None


def _grid(chart: TimeChart, top: int) -> Html:
    heights = [top + chart.height * (1 - tick.place) for tick in chart.scale.ticks()]
    return join(*(tag("line", class_="grid", x1=0, x2="100%", y1=y, y2=y) for y in heights))


def _value_axis(chart: TimeChart, top: int) -> Html:
    ticks = chart.scale.ticks()
    texts = [
        tag("text", tick.label, x="100%", y=top + chart.height * (1 - tick.place) + 4, text_anchor="end")
        for tick in ticks
    ]
    return tag("svg", *texts, class_="values", height=top + chart.height + AXIS, aria_hidden="true")


def _time_axis(ticks: Sequence[Tick], y: int) -> Html:
    crowded = sum(width(tick.label) for tick in ticks) > 1
    return join(
        *(
            tag(
                "text",
                tick.label,
                x=_percent(tick.place),
                y=y + 17,
                text_anchor="start" if tick.place < 0.03 else "end" if tick.place > 0.97 else "middle",
                class_="wide" if crowded and index % 2 else None,
            )
            for index, tick in enumerate(ticks)
        )
    )


def _fault_labels(chart: TimeChart) -> list[Label]:
    """A label a fault; if they do not all fit, how many there were of each kind."""
    named = [fault for fault in chart.faults if fault.name]
    labels = in_rows([beside(fault.name, chart.clock.place(fault.begin)) for fault in named], FAULT_ROWS)
    if len(labels) == len(named):
        return labels
    kinds = Counter(fault.name for fault in named)
    return in_rows([beside(f"{number} × {name}", 0) for name, number in kinds.items()], FAULT_ROWS)


def _faults(chart: TimeChart, labels: Sequence[Label], head: int, top: int) -> Html:
    bottom = top + chart.height
    marks = [_fault(chart.clock.place(f.begin), chart.clock.place(f.end), head, bottom) for f in chart.faults]
    names = [_text(label, head + FAULT_ROW * (label.row + 1) - 3, "fault-name") for label in labels]
    return join(tag("g", *marks, class_="many" if len(marks) > MANY_FAULTS else None), *names)


def _fault(begin: float, end: float, head: int, bottom: int) -> Html:
    place = {"x": _percent(begin), "width": _percent(end - begin)}
    band = tag("rect", class_="fault", y=head, height=bottom - head, **place)
    return join(band, tag("line", class_="fault", x1=_percent(begin), x2=_percent(begin), y1=head, y2=bottom))


def _text(label: Label, y: int, class_: str) -> Html:
    gap = {"start": 4, "middle": 0, "end": -4}[label.anchor]
    return tag("text", label.text, x=_percent(label.at), dx=gap, y=y, text_anchor=label.anchor, class_=class_)


def _drawing(chart: TimeChart, top: int) -> Html:
    paths = [tag("path", class_=f"line {line.style}", d=_path(chart, line)) for line in chart.lines]
    box = f"0 0 {DRAWN} {chart.height}"
    return tag(
        "svg",
        *paths,
        y=top,
        width="100%",
        height=chart.height,
        viewBox=box,
        preserveAspectRatio="none",
        overflow="visible",
    )


def _path(chart: TimeChart, line: Line) -> str:
    """A stroke for every run of known values; where nothing is known, the line is broken."""
    drawn = [extremes(line.values, indexes) for indexes in chart.bins]
    runs = [[index for found in run for index in found] for known, run in groupby(drawn, bool) if known]
    return "".join(_stroke([_point(chart, line, index) for index in run], _lone_width(chart)) for run in runs)


def _stroke(points: Sequence[tuple[float, float]], lone_width: float) -> str:
    if len(points) == 1:
        x, y = points[0]
        return f"M{x - lone_width / 2:.1f} {y:.1f}h{lone_width:.1f}"
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _lone_width(chart: TimeChart) -> float:
    """A value without neighbours is drawn as wide as its time, and never too narrow to be seen."""
    return max(DRAWN * chart.clock.place(2 * _half_step(chart.t)), 3)


def _point(chart: TimeChart, line: Line, index: int) -> tuple[float, float]:
    value = line.values[index] or 0
    x = DRAWN * chart.clock.place(chart.t[index] + _half_step(chart.t))
    return x, chart.height * (1 - chart.scale.place(value))


def _half_step(t: Sequence[float]) -> float:
    return (t[1] - t[0]) / 2 if len(t) > 1 else 0.5


def _legend(chart: TimeChart) -> Html:
    when = tag("li", tag("output"), class_="when", data_values="|".join(_when(chart, b) for b in chart.bins))
    return tag("ul", *(_legend_item(chart, line) for line in chart.lines), when, class_="legend")


def _legend_item(chart: TimeChart, line: Line) -> Html:
    sample = tag("line", class_=f"line {line.style}", x1=1, x2=21, y1=6, y2=6)
    swatch = tag("svg", sample, width=22, height=12, aria_hidden="true")
    values = "|".join(_reading(chart, line, indexes) for indexes in chart.bins)
    return tag("li", swatch, tag("span", line.name), tag("output"), data_values=values)


def _reading(chart: TimeChart, line: Line, indexes: range) -> str:
    found = [value for index in extremes(line.values, indexes) if (value := line.values[index]) is not None]
    return " – ".join(dict.fromkeys(chart.show(value) for value in sorted(found))) or "–"


def _when(chart: TimeChart, indexes: range) -> str:
    first, last = chart.t[indexes[0]], chart.t[indexes[-1]]
    return f"at {seconds(first)}" if first == last else f"{seconds(first)} – {seconds(last)}"


def _places(chart: TimeChart) -> str:
    middles = [(chart.t[b[0]] + chart.t[b[-1]]) / 2 + _half_step(chart.t) for b in chart.bins]
    return " ".join(f"{chart.clock.place(middle):.4f}" for middle in middles)


def _percent(place: float) -> str:
    return f"{100 * place:.2f}%"

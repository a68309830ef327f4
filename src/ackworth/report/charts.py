"""The charts of a trial: throughput, latency, and two small ones a process."""

from collections.abc import Callable, Sequence

from ackworth.model.result import Resource, TrialResult
from ackworth.report.chart import Line, Span, TimeChart, time_chart, time_domain
from ackworth.report.markup import Html, tag
from ackworth.report.scale import Clock, Linear, Logarithmic, Scale
from ackworth.report.summary import rates
from ackworth.report.text import count, duration, significant, size
from ackworth.report.thin import Values

SMALL_POINTS = 160
SMALL_HEIGHT = 56


def throughput(trial: TrialResult, limit: int) -> Html:
    series = trial["series"]
    lines = [
        Line("sent", "sent", series["sent"]),
        Line("acked", "acked", series["acked"]),
        Line("delivered", "delivered", series["delivered"]),
    ]
    scale = Linear.over(value for line in lines for value in line.values)
    summary = f"Messages per second. {_sentence(rates(trial))}"
    return _over_time(trial, "Throughput", summary, lines, scale, count, limit)


def latency(trial: TrialResult, limit: int) -> Html:
    series = trial["series"]
    lines = [
        Line("ack p50", "acked half", series["ack_p50"]),
        Line("ack p99", "acked", series["ack_p99"]),
        Line("delivery p50", "delivered half", series["delivery_p50"]),
        Line("delivery p99", "delivered", series["delivery_p99"]),
    ]
    scale = Logarithmic.over(value for line in lines for value in line.values)
    highest = ", ".join(f"highest {line.name} {duration(_highest(line.values))}" for line in lines[1::2])
    counted = "Acks from when they were due, deliveries from sending, by the second"
    summary = f"{counted}; each gridline is ten times the one below. {_sentence(highest)}"
    return _over_time(trial, "Latency", summary, lines, scale, duration, limit)


def resources(trial: TrialResult) -> list[Html]:
    """A card a process; all share their axes, so that the eye may compare them."""
    found = trial["resources"]
    ends = [moment for resource in found for moment in resource["t"]]
    clock = time_domain(ends, _spans(trial), 0)
    cpu = Linear.over((v for r in found for v in r["cpu"]), 3)
    rss = Linear.over((v / 2**20 for r in found for v in r["rss"]), 3)
    faults = [Span("", fault.begin, fault.end) for fault in fault_spans(trial)]
    return [_card(resource, clock, cpu, rss, faults) for resource in found]


def fault_spans(trial: TrialResult) -> list[Span]:
    """A fault lasts until the node answered again, as far as that is known."""
    return [
        Span(fault["name"], fault["begin"], max(fault["end"], fault["ready"] or fault["end"]))
        for fault in trial["faults"]
    ]


def _phase_spans(trial: TrialResult) -> list[Span]:
    return [Span(str(phase["name"]), phase["begin"], phase["end"]) for phase in trial["phases"]]


def _spans(trial: TrialResult) -> list[Span]:
    return _phase_spans(trial) + fault_spans(trial)


def _over_time(
    trial: TrialResult,
    title: str,
    summary: str,
    lines: Sequence[Line],
    scale: Scale,
    show: Callable[[float], str],
    limit: int,
) -> Html:
    if all(value is None for line in lines for value in line.values):
        return tag("p", f"{title} over time was not recorded.", class_="none")
    t = trial["series"]["t"]
    chart = TimeChart(
        title=title,
        summary=summary,
        clock=time_domain(t, _spans(trial)),
        t=t,
        lines=lines,
        scale=scale,
        show=show,
        phases=_phase_spans(trial),
        faults=fault_spans(trial),
        limit=limit,
    )
    return time_chart(chart)


def _card(resource: Resource, clock: Clock, cpu: Scale, rss: Scale, faults: Sequence[Span]) -> Html:
    def small(title: str, summary: str, values: Values, scale: Scale, show: Callable[[float], str]) -> Html:
        style = "acked" if title == "CPU" else "delivered"
        chart = TimeChart(
            title=title,
            summary=summary,
            clock=clock,
            t=resource["t"],
            lines=[Line(f"{resource['who']} {title}", style, values)],
            scale=scale,
            show=show,
            phases=(),
            faults=faults,
            limit=SMALL_POINTS,
            height=SMALL_HEIGHT,
            intervals=3,
        )
        return time_chart(chart)

    cores = f"{significant(resource['cpu_cores'])} cores on average, {significant(resource['cpu_cores_max'])} at most"
    disk = f"{size(resource['read'])} read, {size(resource['written'])} written"
    memory = [value / 2**20 for value in resource["rss"]]
    return tag(
        "section",
        tag("h4", resource["who"]),
        small("CPU", cores, resource["cpu"], cpu, lambda v: f"{significant(v)} cores"),
        small("Memory", f"{size(resource['rss_max'])} at most", memory, rss, lambda v: f"{significant(v)} MiB"),
        tag("p", disk, class_="quiet"),
        class_="card",
    )


def _highest(values: Values) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""

"""The limit: which side held the load back, from what each used while it went on undisturbed.

1. Only samples count whose whole interval lies in a phase of the load that is no warm-up, and in no fault's way from
   its beginning until the node was ready again.
2. A producer's process has one thread: it is at its limit when it uses a core. A disk is when it is busy all the time,
   the machine when all its cores are. A broker may use more than a core; one that uses just one is taken to be at its
   limit, as its work may well be in one thread.
3. Of several, the first counts in this order: generator, disk, broker, machine. A generator that is at its limit says
   that the figures are its own, and not the broker's: that must never be hidden.
4. If none is, the load was waiting: for a rate that the plan set, or for answers.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ackworth.model.result import Limit, Resource
from ackworth.pipeline.context import Context
from ackworth.pipeline.measurement import Findings, Key, Measurement, Request

BUSY = 0.9  # of a core, of the time, of all cores
FOREIGN = 0.3  # cores that others, the kernel or the hypervisor may use before it is worth a word
SAMPLED_EVERY = 1.0  # seconds

Span = tuple[float, float]


class LimitingSide(Measurement):
    name = "limit"
    needs = ("resources", "recovery")
    columns = {}  # noqa: RUF012

    @classmethod
    def request(cls, context: Context, findings: Findings, groups: Any) -> Request | None:
        return None  # all that it needs is in the findings

    @classmethod
    def conclude(cls, context: Context, found: Mapping[Key, Any], findings: Findings) -> None:
        used = {r["who"]: _mean(r, _load(context, findings), _faults(findings)) for r in findings.result["resources"]}
        findings.result["limit"] = _limit(context, {who: mean for who, mean in used.items() if mean is not None})


def _load(context: Context, findings: Findings) -> list[Span]:
    spans = [(phase["begin"], phase["end"]) for phase in findings.result["phases"] if phase["name"] != "drain"]
    return [span for span in spans if span[0] >= context.seconds(context.warm_at)]


def _faults(findings: Findings) -> list[Span]:
    return [
        (fault["begin"], fault["end"] if fault["ready"] is None else fault["ready"])
        for fault in findings.result["faults"]
    ]


def _mean(resource: Resource, load: list[Span], faults: list[Span]) -> float | None:
    """Cores, or for a disk the part of the time that it was busy; None if no sample counts."""
    values = resource["busy"] if resource["who"].startswith("disk:") else resource["cpu"]
    counted = [
        value
        for (begin, end), value in zip(_intervals(resource), values, strict=True)
        if any(b <= begin and end <= e for b, e in load) and not any(begin < e and b < end for b, e in faults)
    ]
    return sum(counted) / len(counted) if counted else None


def _intervals(resource: Resource) -> Iterator[Span]:
    ends = resource["t"]
    return zip([ends[0] - SAMPLED_EVERY, *ends] if ends else [], ends, strict=False)


def _limit(context: Context, used: Mapping[str, float]) -> Limit:
    producers = [mean for who, mean in used.items() if who.startswith("worker:producers")]
    nodes = [mean for who, mean in used.items() if who.startswith("node:")]
    disks = [mean for who, mean in used.items() if who.startswith("disk:")]
    ours = sum(mean for who, mean in used.items() if who != "host" and not who.startswith("disk:"))
    limit = Limit(
        side="unknown",
        said="",
        generator=max(producers, default=None),
        broker=sum(nodes) if nodes else None,
        disk=max(disks, default=None),
        machine=used.get("host"),
        others=max(0.0, used["host"] - ours) if "host" in used else None,
    )
    limit["side"] = _side(context, limit)
    limit["said"] = _said(context, limit)
    return limit


def _side(context: Context, limit: Limit) -> str:
    cores = context.trial.cores
    if limit["generator"] is None or limit["machine"] is None:
        return "unknown"
    if limit["generator"] >= BUSY:
        return "generator"
    if limit["disk"] is not None and limit["disk"] >= BUSY:
        return "disk"
    if limit["broker"] is not None and limit["broker"] >= BUSY:
        return "broker"
    return "machine" if cores and limit["machine"] >= BUSY * cores else "none"


def _said(context: Context, limit: Limit) -> str:
    words = {
        "unknown": "Which side was the limit cannot be told: the load was too short to be sampled undisturbed",
        "generator": _generator(context),
        "disk": "The disk was the limit",
        "broker": "The broker was the limit",
        "machine": "The machine was the limit: all its cores were busy",
        "none": _waiting(context),
    }
    figures = ", ".join(_figures(context, limit))
    return f"{words[limit['side']]}{_others(limit)}{f' ({figures})' if figures else ''}."


def _generator(context: Context) -> str:
    if context.trial.broker.get("embedded"):
        return "The limit was in the workers, in which load and broker run together"
    return "The generator was the limit, and not the broker: what was measured is Ackworth's own speed"


def _waiting(context: Context) -> str:
    phases = (context.trial.plan.get("workload") or {}).get("phases") or ()
    if phases and all(phase["rate"] is not None for phase in phases):
        return "Nothing was at its limit: the plan set the rate"
    return "Nothing was busy all the time: the load waited for answers"


def _others(limit: Limit) -> str:
    foreign = limit["others"]
    return f"; {foreign:.1f} cores went to what is no part of the run" if foreign and foreign >= FOREIGN else ""


def _figures(context: Context, limit: Limit) -> Iterator[str]:
    if limit["generator"] is not None:
        yield f"busiest producer {limit['generator']:.2f} of a core"
    if limit["broker"] is not None:
        yield f"broker {limit['broker']:.2f} cores"
    if limit["disk"] is not None:
        yield f"disk busy {limit['disk']:.0%}"
    if limit["machine"] is not None:
        of = f" of {context.trial.cores}" if context.trial.cores else ""
        yield f"machine {limit['machine']:.2f}{of} cores"

"""Rates that are a part of what an earlier trial reached, made numbers once that trial has run."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import pyarrow as pa
import pyarrow.compute as pc

from ackworth.history.reader import Record, RowGroup, open_record, open_segment, read_table
from ackworth.model.clock import SECOND
from ackworth.model.errors import Unavailable
from ackworth.model.outcome import Outcome
from ackworth.plan.model import Phase
from ackworth.plan.reader import RateOf
from ackworth.plan.resolve import TrialPlan, referred

_NEVER = 1 << 62


def settled(trial: TrialPlan, among: Sequence[TrialPlan], trials: Path) -> TrialPlan:
    """The trial with numbers for rates, from records below `trials`. Raises Unavailable if they give none."""
    measured: dict[str, list[float]] = {}
    for other in referred(trial, among):
        if (trials / other.name).exists() and (rate := acked_per_second(trials / other.name)):
            measured.setdefault(other.case, []).append(rate)
    phases = tuple(_settled(phase, measured) for phase in trial.plan.workload.phases)
    workload = dataclasses.replace(trial.plan.workload, phases=phases)
    return dataclasses.replace(trial, plan=dataclasses.replace(trial.plan, workload=workload))


def _settled(phase: Phase, measured: Mapping[str, list[float]]) -> Phase:
    if not isinstance(phase.rate, RateOf):
        return phase
    if phase.rate.case not in measured:
        raise Unavailable(f"'{phase.rate.case}' acked nothing that a rate could be taken from")
    return dataclasses.replace(phase, rate=phase.rate.share * fmean(measured[phase.rate.case]))


def acked_per_second(directory: Path) -> float | None:
    """From the first message sent after the warm-up to the last ack, as judging counts it."""
    record = open_record(directory)
    warm = _warm_at(record)
    acked, first, last = 0, _NEVER, 0
    for group in record.of("outcome"):
        rows = _columns(group, "outcome", "t", "latency")
        sent_warm = pc.greater_equal(pc.subtract(rows["t"], rows["latency"]), warm)
        times = rows["t"].filter(pc.and_(pc.equal(rows["outcome"], int(Outcome.ACKED)), sent_warm))
        acked, last = acked + len(times), max(last, pc.max(times).as_py() or 0)
    for group in record.of("sent"):
        times = _columns(group, "t")["t"]
        begun = pc.min(times.filter(pc.greater_equal(times, warm))).as_py()
        first = first if begun is None else min(first, begun)
    return acked * SECOND / (last - first) if last > first else None


def _warm_at(record: Record) -> int:
    marks = [row for group in record.of("mark") for row in read_table(group, ("what", "t_end", "detail"))]
    return max((row["t_end"] for row in marks if json.loads(row["detail"] or "{}").get("warm_up")), default=0)


def _columns(group: RowGroup, *names: str) -> pa.Table:
    with open_segment(group.path) as file:
        return file.read_row_group(group.index, list(names))

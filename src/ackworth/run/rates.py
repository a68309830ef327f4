"""Rates that are a part of what an earlier trial reached, made numbers once that trial has run."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import pyarrow.compute as pc

from ackworth.history.reader import open_record, open_segment
from ackworth.model.clock import SECOND
from ackworth.model.errors import Unavailable
from ackworth.model.outcome import Outcome
from ackworth.plan.model import Phase
from ackworth.plan.reader import RateOf
from ackworth.plan.resolve import TrialPlan, referred


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
    """From the first message sent to the last ack, as judging counts it."""
    record = open_record(directory)
    acked, last = 0, 0
    for group in record.of("outcome"):
        with open_segment(group.path) as file:
            rows = file.read_row_group(group.index, ["outcome", "t"])
        times = rows["t"].filter(pc.equal(rows["outcome"], int(Outcome.ACKED)))
        acked, last = acked + len(times), max(last, pc.max(times).as_py() or 0)
    first = min((group.bounds["t"][0] for group in record.of("sent")), default=last)
    return acked * SECOND / (last - first) if last > first else None

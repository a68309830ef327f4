"""Whether the disk has room: asked before a trial, and again every second while it runs."""

import shutil
from pathlib import Path

from ackworth.broker.contract import Broker
from ackworth.model.errors import AckworthError, BadInput
from ackworth.plan.model import Phase, Workload

GIB = 1 << 30
# Below this a trial stops while it still can in good order.
RESERVE = 256 << 20
# A closed loop bounded only by time: what the fastest broker that we know takes in a second.
_ASSUMED_RATE = 200_000
# Bytes that one message leaves in the record: chunks that wait for the scribe, and segments.
_RECORD = 60


class DiskFull(AckworthError):
    """The disk filled up while the trial ran."""


def needed(workload: Workload, broker: Broker) -> int:
    """An estimate of what a trial writes, in bytes."""
    messages = sum(p.messages or int((p.duration or 0) * _rate(p)) for p in workload.phases)
    stored = (workload.body.mean + broker.overhead) * broker.growth
    return int(messages * (stored + _RECORD)) + RESERVE


def _rate(phase: Phase) -> float:
    return phase.rate if isinstance(phase.rate, float) else _ASSUMED_RATE


def check_before(path: Path, workload: Workload, broker: Broker) -> None:
    """Raises BadInput if the disk that will hold the path has too little room."""
    there = next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists())
    free, need = shutil.disk_usage(there).free, needed(workload, broker)
    if free < need:
        raise BadInput(
            f"{path}: about {need / GIB:,.1f} GiB are needed and {free / GIB:,.1f} GiB are free: "
            "choose another disk with --out, or a smaller --size"
        )


def check_during(path: Path) -> None:
    free = shutil.disk_usage(path).free
    if free < RESERVE // 2:
        raise DiskFull(
            f"the disk of {path} is full ({free >> 20} MiB left): the trial was stopped, its record is whole"
        )

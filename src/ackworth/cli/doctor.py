"""`ackworth doctor`: whether this machine has what runs and judging need, and what to do if not."""

import argparse
import json
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from ackworth.broker import disk
from ackworth.model import java
from ackworth.run import traces


@dataclass(frozen=True)
class Finding:
    name: str
    needed_for: str
    found: str
    remedy: str | None  # None: all is well
    required: bool = True


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print it as JSON")


def main(args: argparse.Namespace) -> int:
    findings = [look() for look in LOOKS]
    if args.json:
        print(json.dumps([asdict(f) for f in findings], indent=1))
    else:
        for finding in findings:
            state = "ok     " if finding.remedy is None else "MISSING" if finding.required else "limited"
            print(f"{state} {finding.name:<12} {finding.found} (for {finding.needed_for})")
            if finding.remedy:
                print(f"        {'':<12} {finding.remedy}")
    return 2 if any(f.remedy and f.required for f in findings) else 0


def _python() -> Finding:
    remedy = None if sys.version_info >= (3, 11) else "install Python 3.11 or later"
    return Finding("python", "everything", platform.python_version(), remedy)


def _java() -> Finding:
    found = java.look()
    return Finding("java", "judging on Spark, Kafka and ActiveMQ", found.name if found else "none", java.why_not(found))


def _power_cut() -> Finding:
    why = disk.why_not()
    return Finding(
        "power cut", "the fault power-cut", "root and loop devices" if why is None else "no", why, required=False
    )


def _room() -> Finding:
    free = shutil.disk_usage(Path.cwd()).free
    remedy = None if free > 2 << 30 else "free some space, or run with --out on another disk"
    return Finding("disk", "runs in this directory", f"{free / (1 << 30):.1f} GiB free", remedy)


def _leftovers() -> Finding:
    removed = traces.sweep()
    return Finding("leftovers", "a clean start", "; ".join(removed) or "none", None)


LOOKS: tuple[Callable[[], Finding], ...] = (_python, _java, _power_cut, _room, _leftovers)

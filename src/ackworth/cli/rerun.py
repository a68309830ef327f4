"""`ackworth rerun`: a run once more, as its record says."""

import argparse
from pathlib import Path

from ackworth.broker import registry
from ackworth.cli import judging, run
from ackworth.cli.progress import Progress
from ackworth.history.reader import open_record
from ackworth.model.errors import BadInput
from ackworth.plan.tree import load
from ackworth.report.difference import differences
from ackworth.run import directory, environment


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("run", metavar="RUN", type=Path, help="the directory of a run")
    command.add_argument("--out", metavar="DIR", type=Path, help="where the new run goes (default: runs/PLAN-TIME)")
    command.add_argument("--attach", metavar="URL", help="the user's own broker once more, as its password is not kept")
    judging.arguments(command)


def main(args: argparse.Namespace) -> int:
    before = directory.open_run(args.run)
    if before.attached and args.attach is None:
        raise BadInput(f"{args.run}: was attached to {before.attached}: give the URL again with --attach")
    progress = Progress(quiet=args.quiet)
    for line in _differs(args.run, before):
        progress.say(f"differs from {args.run}: {line}")
    again = argparse.Namespace(
        **{**vars(args), "size": before.size, "seed": before.seed, "set": list(before.sets)},
        broker=[] if args.attach else list(before.brokers),
        on=list(before.on),
        only=list(before.trials),
        repeats=before.repeats,
    )
    return run.carry_out(load(args.run / "plan.yaml"), again)


def _differs(path: Path, before: directory.Run) -> list[str]:
    """Of the machine and of the brokers' versions; the rest is the same by being taken from the record."""
    now = environment.describe(path)
    old, new = ({"environment": before.environment}, {"environment": now})
    brokers = [open_record(folder).trial.broker for folder in directory.trial_directories(path, before).values()]
    versions = {broker["kind"]: broker["version"] for broker in brokers if not broker.get("attached")}
    here = {kind: registry.find(kind).missing() or registry.find(kind).version() for kind in versions}
    return [str(found) for found in differences({**old, "broker": versions}, {**new, "broker": here})]

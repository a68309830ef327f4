"""`ackworth run`: one command from a plan to a verdict."""

import argparse
import secrets
import signal
from datetime import UTC, datetime
from pathlib import Path

import ackworth
from ackworth.broker import disk, registry, urls
from ackworth.cli import judging
from ackworth.cli.choice import choose
from ackworth.cli.progress import Progress
from ackworth.model.errors import BadInput, Unavailable
from ackworth.model.words import counted
from ackworth.plan import resolve
from ackworth.plan.resolve import TrialPlan
from ackworth.plan.tree import SIZES, Tree
from ackworth.run import directory, environment, rates, space, traces
from ackworth.run.attached import Attachment, attach
from ackworth.run.conductor import Conductor


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "plan", metavar="PLAN", help="a plan that ships (see `ackworth plans`) or the path of your own"
    )
    command.add_argument(
        "--broker",
        metavar="B",
        action="append",
        default=[],
        help="the broker, instead of the plan's (see `ackworth brokers`); repeatable",
    )
    command.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], help="change a key of the plan; repeatable"
    )
    command.add_argument("--only", metavar="TRIAL", action="append", default=[], help="only this trial; repeatable")
    command.add_argument("--size", choices=SIZES, default="small", help="how large: small (default) or as published")
    command.add_argument("--repeats", metavar="N", type=_count, help="how often each trial, instead of the plan's")
    command.add_argument("--out", metavar="DIR", type=Path, help="where the run goes (default: runs/PLAN-TIME)")
    command.add_argument("--seed", metavar="N", type=_seed, help="makes everything random the same again")
    command.add_argument(
        "--attach",
        metavar="URL",
        help=f"a broker of your own: {urls.FORM}; the scheme is one of {', '.join(registry.schemes())}",
    )
    command.add_argument(
        "--on",
        metavar="FAULT=COMMAND",
        action="append",
        default=[],
        help="what breaks the attached broker; start=COMMAND is what starts it again, if it does not by itself; "
        "repeatable",
    )
    judging.arguments(command)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number of at least 1")
    return int(text)


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number of at least 0")
    return int(text)


def main(args: argparse.Namespace) -> int:
    return carry_out(resolve.find(args.plan), args)


def carry_out(tree: Tree, args: argparse.Namespace) -> int:
    """Run the plan of a tree as the arguments say, and judge it."""
    progress = Progress(quiet=args.quiet)
    attachment = _attachment(args)
    brokers, trials = choose(tree, args, attachment, progress)
    seed = secrets.randbits(32) if args.seed is None else args.seed
    path = args.out or directory.default_out(trials[0].plan.name)
    for trial in trials:
        space.check_before(path, trial.plan.workload, registry.find(trial.plan.broker.kind))
    for line in traces.sweep():
        progress.say(line)
    directory.create(path)
    run = directory.Run(
        run=directory.new_id(),
        plan=trials[0].plan.name,
        title=trials[0].plan.title,
        size=args.size,
        seed=seed,
        sets=tuple(args.set),
        trials=tuple(trial.name for trial in trials),
        brokers=tuple(brokers),
        repeats=args.repeats,
        attached=attachment.shown if attachment else None,
        on=tuple(args.on),
        started=datetime.now(UTC).isoformat(),
        ackworth=ackworth.__version__,
        environment=environment.describe(path),
    )
    directory.begin(path, run, Path(tree.place.file).read_text(encoding="utf-8"))
    progress.say(f"{run.plan}, size {run.size}, seed {seed}: {counted(len(trials), 'trial')} into {path}")
    _conduct(path, run, trials, progress, attachment)
    return judging.judge_and_report(path, args, progress)


def _attachment(args: argparse.Namespace) -> Attachment | None:
    if args.attach is None:
        if args.on:
            raise BadInput(f"--on {args.on[0]}: only a broker of your own is broken by commands: name it with --attach")
        return None
    if args.broker:
        raise BadInput(f"--broker {args.broker[0]}: the URL of --attach says which broker it is: leave --broker away")
    return attach(args.attach, args.on)


def _conduct(
    path: Path, run: directory.Run, trials: list[TrialPlan], progress: Progress, attachment: Attachment | None
) -> None:
    if disk.why_not() is None:
        disk.privately()
    with traces.noted(run.run, path):
        try:
            for number, trial in enumerate(trials, 1):
                progress.begin(f"[{number}/{len(trials)}] {trial.name}")
                seed = run.seed + number - 1
                try:
                    ready = rates.settled(trial, trials, path / "trials")
                except Unavailable as error:
                    progress.say(f"{trial.name}: not begun: {error}")
                    continue
                end = Conductor(ready, path / "trials" / trial.name, run.run, seed, progress, attachment).run()
                progress.end([*end.problems, *end.notes])
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            raise BadInput(
                f"interrupted; the record so far is in {path}: judge it with `ackworth check {path}`"
            ) from None

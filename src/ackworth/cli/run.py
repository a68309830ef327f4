"""`ackworth run`: one command from a plan to a verdict."""

import argparse
import secrets
import signal
from datetime import UTC, datetime
from pathlib import Path

import ackworth
from ackworth.broker import disk, registry
from ackworth.broker.contract import Broker
from ackworth.cli import judging
from ackworth.cli.progress import Progress
from ackworth.driver import contract as drivers
from ackworth.fault import contract as faults
from ackworth.model.errors import BadInput
from ackworth.model.words import nearest
from ackworth.plan import resolve
from ackworth.plan.model import CONSUMER, Workload
from ackworth.plan.resolve import TrialPlan
from ackworth.plan.tree import SIZES
from ackworth.run import directory, environment, space, traces
from ackworth.run.conductor import Conductor

HELP = "run a plan and judge it"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "plan", metavar="PLAN", help="a plan that ships (see `ackworth plans`) or the path of your own"
    )
    command.add_argument("--broker", metavar="B", help="the broker, instead of the plan's (see `ackworth brokers`)")
    command.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], help="change a key of the plan; repeatable"
    )
    command.add_argument("--only", metavar="TRIAL", action="append", default=[], help="only this trial; repeatable")
    command.add_argument("--size", choices=SIZES, default="small", help="how large: small (default) or as published")
    command.add_argument("--out", metavar="DIR", type=Path, help="where the run goes (default: runs/PLAN-TIME)")
    command.add_argument("--seed", metavar="N", type=int, help="makes everything random the same again")
    judging.arguments(command)


def main(args: argparse.Namespace) -> int:
    tree = resolve.find(args.plan)
    sets = [*([f"broker.kind={args.broker}"] if args.broker else []), *args.set]
    trials = _chosen(resolve.trials(tree, args.size, sets), args.only)
    _check(trials)
    seed = secrets.randbits(32) if args.seed is None else args.seed
    path = args.out or directory.default_out(trials[0].plan.name)
    for trial in trials:
        space.check_before(path, trial.plan.workload, registry.find(trial.plan.broker.kind))
    progress = Progress(quiet=args.quiet)
    for line in traces.sweep():
        progress.say(line)
    directory.create(path)
    run = directory.Run(
        run=directory.new_id(),
        plan=trials[0].plan.name,
        title=trials[0].plan.title,
        size=args.size,
        seed=seed,
        sets=tuple(sets),
        trials=tuple(trial.name for trial in trials),
        started=datetime.now(UTC).isoformat(),
        ackworth=ackworth.__version__,
        environment=environment.describe(path),
    )
    directory.begin(path, run, Path(tree.place.file).read_text(encoding="utf-8"))
    progress.say(f"{run.plan}, size {run.size}, seed {seed}: {len(trials)} trial{'s' * (len(trials) > 1)} into {path}")
    _conduct(path, run, trials, progress)
    return judging.judge_and_report(path, args, progress)


def _chosen(trials: list[TrialPlan], only: list[str]) -> list[TrialPlan]:
    known = [trial.name for trial in trials]
    for name in only:
        if name not in known:
            raise BadInput(f"the plan has no trial '{name}'{nearest(name, known)}")
    return [trial for trial in trials if not only or trial.name in only]


def _check(trials: list[TrialPlan]) -> None:
    """What the plan files cannot know: that the broker, its settings, its topology and the faults exist."""
    for trial in trials:
        broker = registry.find(trial.plan.broker.kind)
        registry.settle(broker, trial.plan.broker.settings)
        if trial.plan.broker.topology not in broker.topologies:
            known = ", ".join(broker.topologies)
            raise BadInput(f"{broker.name} has no topology '{trial.plan.broker.topology}': it has {known}")
        nodes = (*broker.nodes(trial.plan.broker.topology), "all", "random", CONSUMER)
        for fault in trial.plan.faults:
            faults.find(fault.kind)
            if fault.node not in nodes:
                raise BadInput(f"{broker.name} has no node '{fault.node}' to break: say one of {', '.join(nodes)}")
        _check_driver(trial.plan.workload, broker)


def _check_driver(workload: Workload, broker: Broker) -> None:
    driver = drivers.load(broker.driver)
    if workload.broadcast and not isinstance(driver, drivers.Broadcasting):
        raise BadInput(f"{broker.name} has no broadcast: choose another broker, or set workload.broadcast to false")
    if workload.refuse and not issubclass(driver.Receiver, drivers.Refusing):
        raise BadInput(f"{broker.name} cannot be refused a message: choose another broker, or leave out refuse")


def _conduct(path: Path, run: directory.Run, trials: list[TrialPlan], progress: Progress) -> None:
    if disk.why_not() is None:
        disk.privately()
    with traces.noted(run.run, path):
        try:
            for number, trial in enumerate(trials, 1):
                progress.begin(f"[{number}/{len(trials)}] {trial.name}")
                seed = run.seed + number - 1
                end = Conductor(trial, path / "trials" / trial.name, run.run, seed, progress).run()
                progress.end([*end.problems, *end.notes])
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            raise BadInput(
                f"interrupted; the record so far is in {path}: judge it with `ackworth check {path}`"
            ) from None

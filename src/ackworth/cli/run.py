"""`ackworth run`: one command from a plan to a verdict."""

import argparse
import secrets
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import ackworth
from ackworth.broker import disk, registry
from ackworth.broker.contract import Broker, Selective
from ackworth.cli import judging
from ackworth.cli.progress import Progress
from ackworth.fault import contract as faults
from ackworth.model.errors import BadInput, Unavailable
from ackworth.model.words import nearest
from ackworth.plan import resolve
from ackworth.plan.brokers import asks_for_every, on
from ackworth.plan.resolve import TrialPlan
from ackworth.plan.tree import SIZES, Tree
from ackworth.run import directory, environment, rates, space, traces
from ackworth.run.attached import Attachment, attach
from ackworth.run.conductor import Conductor

HELP = "run a plan and judge it"


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
    command.add_argument("--seed", metavar="N", type=int, help="makes everything random the same again")
    command.add_argument(
        "--attach", metavar="URL", help="a broker of your own, such as redis://USER:PASSWORD@HOST:PORT or rediss://…"
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
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number of at least 1")
    return int(text)


def main(args: argparse.Namespace) -> int:
    return carry_out(resolve.find(args.plan), args)


def carry_out(tree: Tree, args: argparse.Namespace) -> int:
    """Run the plan of a tree as the arguments say, and judge it."""
    progress = Progress(quiet=args.quiet)
    attachment = _attachment(args)
    brokers = _brokers(tree, [attachment.kind] if attachment else args.broker)
    rows = {name: _levels(registry.find(name), attachment, args.set) for name in brokers}
    if asks_for_every(tree) and attachment is None:
        rows = {name: to_be_had(registry.find(name), levels, progress) for name, levels in rows.items()}
    on_brokers = on(tree, brokers, rows)
    trials = _chosen(resolve.trials(on_brokers, args.size, args.set, args.repeats), args.only)
    _check(trials)
    if attachment:
        trials = _breakable(trials, attachment, progress)
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
    progress.say(f"{run.plan}, size {run.size}, seed {seed}: {len(trials)} trial{'s' * (len(trials) > 1)} into {path}")
    _conduct(path, run, trials, progress, attachment)
    return judging.judge_and_report(path, args, progress)


def _brokers(tree: Tree, named: list[str]) -> list[str]:
    """Those that were named; if none was, and the plan asks for every broker, those that can run here."""
    if named or not asks_for_every(tree):
        return list(dict.fromkeys(named))
    return [name for name, broker in registry.brokers().items() if broker.missing() is None]


def _attachment(args: argparse.Namespace) -> Attachment | None:
    if args.attach is None:
        if args.on:
            raise BadInput(f"--on {args.on[0]}: only a broker of your own is broken by commands: name it with --attach")
        return None
    if args.broker:
        raise BadInput(f"--broker {args.broker[0]}: the URL of --attach says which broker it is: leave --broker away")
    return attach(args.attach, args.on)


def _levels(broker: Broker, attachment: Attachment | None, sets: list[str]) -> list[dict[str, Any]]:
    """A broker of the user's own is as it is: at the settings that --set says it has, or at its defaults."""
    told = any(text.startswith("broker.settings.") for text in sets)
    return registry.levels(broker) if attachment is None or told else [registry.settle(broker, {})]


def to_be_had(broker: Broker, levels: list[dict[str, Any]], progress: Progress) -> list[dict[str, Any]]:
    """Without the settings that this version does not have; what is left out is said."""
    found = []
    for settings in levels:
        reason = broker.lacks(settings) if isinstance(broker, Selective) and broker.missing() is None else None
        if reason is None:
            found.append(settings)
        else:
            progress.say(f"{broker.name} {settings}: left out: {reason}")
    return found


def _breakable(trials: list[TrialPlan], attachment: Attachment, progress: Progress) -> list[TrialPlan]:
    """The trials whose faults all have a command; what is left out is said."""
    lacking = {
        trial.name: missing
        for trial in trials
        if (missing := [fault.kind for fault in trial.plan.faults if fault.kind not in attachment.commands])
    }
    if len(lacking) == len(trials):
        kind = next(iter(lacking.values()))[0]
        raise BadInput(
            f"nothing says how to break {attachment.shown}: add --on {kind}='COMMAND' for the fault '{kind}'"
        )
    for name, kinds in lacking.items():
        progress.say(f"{name}: left out: nothing says how to do '{kinds[0]}' (--on {kinds[0]}='COMMAND')")
    return [trial for trial in trials if trial.name not in lacking]


def _chosen(trials: list[TrialPlan], only: list[str]) -> list[TrialPlan]:
    known = [trial.name for trial in trials]
    for name in only:
        if name not in known:
            raise BadInput(f"the plan has no trial '{name}'{nearest(name, known)}")
    chosen = [trial for trial in trials if not only or trial.name in only]
    for trial in chosen:
        if (needed := resolve.referred(trial, trials)) and not resolve.referred(trial, chosen):
            raise BadInput(f"trial '{trial.name}' takes its rate from '{needed[0].name}': add --only {needed[0].name}")
    return chosen


def _check(trials: list[TrialPlan]) -> None:
    """What the plan files cannot know: that the broker, its settings, its topology and the faults exist."""
    for trial in trials:
        broker = registry.find(trial.plan.broker.kind)
        registry.settle(broker, trial.plan.broker.settings)
        if trial.plan.broker.topology not in broker.topologies:
            known = ", ".join(broker.topologies)
            raise BadInput(f"{broker.name} has no topology '{trial.plan.broker.topology}': it has {known}")
        nodes = (*broker.nodes(trial.plan.broker.topology), "all", "random")
        for fault in trial.plan.faults:
            faults.find(fault.kind)
            if fault.node not in nodes:
                raise BadInput(f"{broker.name} has no node '{fault.node}' to break: say one of {', '.join(nodes)}")


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

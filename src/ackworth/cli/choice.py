"""Which trials are run: on which brokers, at which settings, and which of them were asked for."""

import argparse
from typing import Any

from ackworth.broker import registry
from ackworth.broker.contract import Broker, Selective
from ackworth.cli.progress import Progress
from ackworth.driver import contract as drivers
from ackworth.fault import contract as faults
from ackworth.fault.contract import Fault
from ackworth.model.errors import BadInput
from ackworth.model.words import nearest
from ackworth.plan import resolve
from ackworth.plan.brokers import asks_for_every, on
from ackworth.plan.model import CONSUMER, Workload
from ackworth.plan.resolve import TrialPlan
from ackworth.plan.tree import Tree
from ackworth.run.attached import Attachment


def choose(
    tree: Tree, args: argparse.Namespace, attachment: Attachment | None, progress: Progress
) -> tuple[list[str], list[TrialPlan]]:
    """The brokers and the trials; what is left out is said. Raises BadInput."""
    brokers = _brokers(tree, [attachment.kind] if attachment else args.broker)
    rows = {name: _levels(registry.find(name), attachment, args.set) for name in brokers}
    if asks_for_every(tree) and attachment is None:
        rows = {name: to_be_had(registry.find(name), levels, progress) for name, levels in rows.items()}
    trials = resolve.trials(on(tree, brokers, rows), args.size, args.set, args.repeats)
    chosen = _chosen(trials, args.only)
    _check(chosen)
    return brokers, _breakable(chosen, attachment, progress) if attachment else chosen


def _brokers(tree: Tree, named: list[str]) -> list[str]:
    """Those that were named; if none was, and the plan asks for every broker, those that can run here."""
    if named or not asks_for_every(tree):
        return list(dict.fromkeys(named))
    return [name for name, broker in registry.brokers().items() if broker.missing() is None]


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
            shown = ", ".join(f"{name}={value}" for name, value in settings.items())
            progress.say(f"{broker.name} {shown}: left out: {reason}")
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
        with trial.at("broker.kind"):
            broker = registry.find(trial.plan.broker.kind)
        for name, value in trial.plan.broker.settings.items():
            with trial.at(f"broker.settings.{name}"):
                registry.settle(broker, {name: value})
        with trial.at("broker.topology"):
            _check_topology(broker, trial.plan.broker.topology)
        for number, fault in enumerate(trial.plan.faults):
            with trial.at(f"faults.{number}.kind"):
                kind = faults.find(fault.kind)
            with trial.at(f"faults.{number}.node"):
                _check_node(broker, trial.plan.broker.topology, kind, fault.node)
        with trial.at("workload"):
            _check_driver(trial.plan.workload, broker)


def _check_topology(broker: Broker, topology: str) -> None:
    if topology not in broker.topologies:
        known = ", ".join(broker.topologies)
        raise BadInput(f"{broker.name} has no topology '{topology}': it has {known}")


def _check_node(broker: Broker, topology: str, fault: Fault, node: str) -> None:
    nodes = (*broker.nodes(topology), "all", "random", CONSUMER)
    if fault.needs_disk and node == CONSUMER:
        raise BadInput(f"'{fault.name}' breaks a disk, and a consumer has none: choose another fault or node")
    if node not in nodes:
        raise BadInput(f"{broker.name} has no node '{node}' to break: say one of {', '.join(nodes)}")


def _check_driver(workload: Workload, broker: Broker) -> None:
    driver = drivers.load(broker.driver)
    if workload.broadcast and not isinstance(driver, drivers.Broadcasting):
        raise BadInput(f"{broker.name} has no broadcast: choose another broker, or set workload.broadcast to false")
    if workload.refuse and not issubclass(driver.Receiver, drivers.Refusing):
        raise BadInput(f"{broker.name} cannot be refused a message: choose another broker, or leave out refuse")

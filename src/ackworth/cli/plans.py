"""`ackworth plans`: what ships."""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ackworth.plan import resolve
from ackworth.plan.brokers import on
from ackworth.plan.resolve import TrialPlan


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print it as JSON")


def main(args: argparse.Namespace) -> int:
    plans = [_describe(name) for name in resolve.shipped()]
    if args.json:
        print(json.dumps(plans, indent=1))
        return 0
    for plan in plans:
        print(f"{plan['name']}  {plan['title']}")
        width = max(len(trial["name"]) for trial in plan["trials"])
        for trial in plan["trials"]:
            settings = f"; at {trial['settings']} settings" if trial["settings"] > 1 else ""
            print(f"    {trial['name']:<{width}}  small: {trial['small']}; published: {trial['published']}{settings}")
    return 0


def _describe(name: str) -> dict[str, Any]:
    tree = on(resolve.find(name), [], {"a broker": [{}]})  # what it asks of every broker, it asks of each
    small, published = resolve.trials(tree, "small"), resolve.trials(tree, "published")
    alike = Counter(
        (trial.case or trial.name, _extent(trial, small), _extent(_same(trial, published), published))
        for trial in small
        if trial.repeat == 1
    )
    return {
        "name": name,
        "title": small[0].plan.title,
        "about": small[0].plan.about.strip(),
        "trials": [
            {"name": case, "small": at_small, "published": at_published, "settings": settings}
            for (case, at_small, at_published), settings in alike.items()
        ],
    }


def _same(trial: TrialPlan, among: Sequence[TrialPlan]) -> TrialPlan:
    """The trial at another size, where it may be repeated more often."""
    return next(other for other in among if (other.case, other.cell) == (trial.case, trial.cell))


def _extent(trial: TrialPlan, among: Sequence[TrialPlan]) -> str:
    plan = trial.plan
    load = ", ".join(f"{p.messages:,} messages" if p.messages else f"{p.duration:g} s" for p in plan.workload.phases)
    repeats = sum((other.case, other.cell) == (trial.case, trial.cell) for other in among)
    often = f" ({repeats} times)" if repeats > 1 else ""
    return " and ".join([load, *(fault.kind for fault in plan.faults)]) + often

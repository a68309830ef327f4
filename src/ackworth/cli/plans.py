"""`ackworth plans`: what ships."""

import argparse
import json
from typing import Any

from ackworth.plan import resolve
from ackworth.plan.model import Plan

HELP = "list the plans that ship, with their trials"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print it as JSON")


def main(args: argparse.Namespace) -> int:
    plans = [_describe(name) for name in resolve.shipped()]
    if args.json:
        print(json.dumps(plans, indent=1))
        return 0
    for plan in plans:
        print(f"{plan['name']}  {plan['title']}")
        for trial in plan["trials"]:
            print(f"    {trial['name']:<12} small: {trial['small']}; published: {trial['published']}")
    return 0


def _describe(name: str) -> dict[str, Any]:
    tree = resolve.find(name)
    small, published = resolve.trials(tree, "small"), resolve.trials(tree, "published")
    return {
        "name": name,
        "title": small[0].plan.title,
        "about": small[0].plan.about.strip(),
        "trials": [
            {"name": s.name, "small": _extent(s.plan), "published": _extent(p.plan)}
            for s, p in zip(small, published, strict=True)
        ],
    }


def _extent(plan: Plan) -> str:
    load = ", ".join(f"{p.messages:,} messages" if p.messages else f"{p.duration:g} s" for p in plan.workload.phases)
    return " and ".join([load, *(fault.kind for fault in plan.faults)])

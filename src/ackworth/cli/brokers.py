"""`ackworth brokers`: what is known, what is installed, which faults can be had here, and why not; installing."""

import argparse
import json
import sys
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from ackworth.broker import registry
from ackworth.broker.contract import Attachable, Broker, Installable
from ackworth.fault import contract as faults
from ackworth.model.errors import Unavailable
from ackworth.report.terminal import Style


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print it as JSON")
    actions = command.add_subparsers(metavar="[install]")
    help_text = "install brokers, of Debian's packages or from Maven Central; their own services are not left running"
    installing = actions.add_parser("install", help=help_text, description=help_text, epilog=command.epilog)
    installing.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="brokers, as `ackworth brokers` lists them; all of them if none is named",
    )
    installing.set_defaults(call=install)


def install(args: argparse.Namespace) -> int:
    # All names are right before anything is done.
    found = [registry.find(name) for name in args.names or registry.brokers()]
    for broker in found:
        if all(broker.missing(topology) is None for topology in broker.topologies):
            print(f"{broker.name}: ready: {broker.version()}")
        elif isinstance(broker, Installable):
            print(f"{broker.name}: installing", file=sys.stderr)
            print(f"{broker.name}: {broker.install()}; {broker.missing() or 'ready: ' + broker.version()}")
        else:
            raise Unavailable(f"{broker.name} cannot be installed from here: {broker.missing()}")
    return 0


def main(args: argparse.Namespace) -> int:
    found = {
        "brokers": [_describe(broker) for broker in registry.brokers().values()],
        "faults": [
            {"name": fault.name, "summary": fault.summary, "unavailable": fault.why_not()}
            for fault in faults.faults().values()
        ],
    }
    if args.json:
        print(json.dumps(found, indent=1))
        return 0
    print("Brokers")
    for broker in found["brokers"]:
        _show(broker["name"], _lines(broker))
    print("Faults")
    for fault in found["faults"]:
        here = f"not here: {fault['unavailable']}" if fault["unavailable"] else "can be had"
        _show(fault["name"], [here, fault["summary"]])
    return 0


def _lines(broker: dict[str, Any]) -> Iterator[str]:
    yield broker["missing"] or f"ready: {broker['version']}"
    yield broker["summary"]
    if broker["attach"]:
        yield f"your own: --attach {' or '.join(f'{scheme}://…' for scheme in broker['attach'])}"
    for topology, reason in broker["topologies"].items() if len(broker["topologies"]) > 1 else ():
        yield f"topology {topology}: {reason or 'ready'}"
    for name, setting in broker["settings"].items():
        values = ", ".join(f"{v} (default)" if v == setting["default"] else str(v) for v in setting["values"])
        yield f"{name}: {values}: {setting['means']}"
        for value, survives in setting["survives"].items():
            yield f"  {value} claims that an acked message survives {', '.join(survives) or 'nothing'}"


def _show(name: str, lines: Iterable[str]) -> None:
    """The name, and the lines beside it; a terminal does not break them at random."""
    room = Style.of(sys.stdout).room or sys.maxsize
    for line in lines:
        print(textwrap.fill(line, room, initial_indent=f"  {name:<14} ", subsequent_indent=" " * 21))
        name = ""


def _describe(broker: Broker) -> dict[str, Any]:
    missing = broker.missing()
    return {
        "name": broker.name,
        "summary": broker.summary,
        "missing": missing,
        "version": "" if missing else broker.version(),
        "topologies": {topology: broker.missing(topology) for topology in broker.topologies},
        "attach": list(broker.schemes) if isinstance(broker, Attachable) else [],
        "settings": {
            name: {
                "means": setting.means,
                "values": list(setting.values),
                "default": setting.default,
                "survives": {
                    value: sorted(broker.claims(registry.settle(broker, {name: value})).survives)
                    for value in setting.values
                },
            }
            for name, setting in broker.settings.items()
        },
    }

"""`ackworth report`: the report of a judged run, made again."""

import argparse
import json
import webbrowser
from pathlib import Path

from ackworth import report
from ackworth.model.errors import Unavailable


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("run", metavar="RUN", type=Path, help="the directory of a run")
    command.add_argument("--open", action="store_true", help="open it in the browser")
    command.add_argument("--json", action="store_true", help="print the results as JSON")


def main(args: argparse.Namespace) -> int:
    result = report.read_results(args.run)
    page = report.write(args.run, result)
    print(json.dumps(result, indent=1) if args.json else page)
    if args.open and not webbrowser.open(page.resolve().as_uri()):
        raise Unavailable(f"{page}: no browser can be started here: open it in one elsewhere, it needs nothing else")
    return 0

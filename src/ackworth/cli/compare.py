"""`ackworth compare`: runs of one plan side by side."""

import argparse
import json
import sys
from pathlib import Path

from ackworth import report
from ackworth.model.errors import BadInput
from ackworth.report.compare import compare
from ackworth.report.compare_table import plain, render
from ackworth.report.terminal import Style


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "runs",
        metavar="RUN",
        type=Path,
        nargs="+",
        help="directories of judged runs; the first is what the others are held against",
    )
    command.add_argument(
        "--threshold",
        metavar="PERCENT",
        type=_percent,
        default=0.1,
        help="a regression is worse by more than this (default: 10)",
    )
    command.add_argument("--json", action="store_true", help="print it as JSON")


def _percent(text: str) -> float:
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is no percentage of at least 0, such as 10")
    return value / 100


def main(args: argparse.Namespace) -> int:
    if len(args.runs) < 2:
        raise BadInput(f"{args.runs[0]}: one run alone cannot be compared: name two or more")
    compared = compare([report.read_results(path) for path in args.runs], args.threshold)
    names = [str(path) for path in args.runs]
    print(json.dumps(plain(compared, names), indent=1) if args.json else render(compared, names, Style.of(sys.stdout)))
    return compared.verdict.exit_code

"""`ackworth check`: judge a record again, without a broker."""

import argparse
from pathlib import Path

from ackworth.cli import judging
from ackworth.cli.progress import Progress


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("run", metavar="RUN", type=Path, help="the directory of a run")
    judging.arguments(command)


def main(args: argparse.Namespace) -> int:
    return judging.judge_and_report(args.run, args, Progress(quiet=args.quiet))

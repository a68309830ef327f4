"""`ackworth`: what is your broker's ack worth?"""

import argparse
import errno
import importlib
import io
import os
import signal
import sys
import traceback
from collections.abc import Collection, Sequence
from typing import TextIO

import ackworth
from ackworth.cli.progress import CLEAR
from ackworth.model.errors import AckworthError

VERDICT = "0 held, 1 broken, 2 unknown or bad input"

# What each does, and its exit codes.
COMMANDS = {
    "run": ("run a plan and judge it", VERDICT),
    "rerun": ("run a plan again as a run's record says: the same plan, settings, trials and seed", VERDICT),
    "check": ("judge a record again, without a broker", VERDICT),
    "compare": (
        "compare runs of one plan, and say whether one is worse than the first by more than noise",
        "0 nothing is worse, 1 a regression, 2 could not be told, or bad input",
    ),
    "report": ("write the report of a judged run again, and show it", "0 written, whatever the verdict; 2 bad input"),
    "plans": ("list the plans that ship, with their trials", "0 listed, 2 bad input"),
    "brokers": (
        "list the brokers, their settings, and the faults that can be had here; or install brokers",
        "0 listed or installed, 2 not, or bad input",
    ),
    "doctor": (
        "say whether this machine has what is needed, and what to do if not",
        "0 all that is needed is here, 2 something is missing",
    ),
}


def parser(of: Collection[str] = COMMANDS) -> argparse.ArgumentParser:
    """With the options of these commands: what some of them need takes long to load."""
    top = argparse.ArgumentParser(
        prog="ackworth",
        description="What is your broker's ack worth? Drives a broker, breaks it, follows every message.",
        epilog=f"exit codes: {VERDICT}",
    )
    top.add_argument("--version", action="version", version=f"ackworth {ackworth.__version__}")
    top.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (does, codes) in COMMANDS.items():
        command = commands.add_parser(name, help=does, description=does, epilog=f"exit codes: {codes}")
        if name in of:
            module = importlib.import_module(f"ackworth.cli.{name}")
            module.arguments(command)
            command.set_defaults(call=module.main)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    before = signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        return _guarded(argv)
    except BrokenPipeError:  # whoever read our output has gone
        _write_no_more_to(sys.stdout, sys.stderr)
        return 2
    finally:
        signal.signal(signal.SIGTERM, before)


def _guarded(argv: Sequence[str] | None) -> int:
    """The exit code; whatever goes wrong is a line on standard error."""
    arguments = argparse.Namespace(debug=False)
    try:
        return _carry_out(argv, arguments)
    except AckworthError as error:
        return _say(arguments.debug, str(error))
    except KeyboardInterrupt:
        return _say(arguments.debug, "interrupted")
    except BrokenPipeError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and (error.filename is not None or error.errno == errno.ENOSPC):
            return _say(arguments.debug, _fault_of_the_machine(error))
        traceback.print_exc()
        why = traceback.format_exception_only(error)[-1].strip()  # also of one that cannot say what it is
        return _say(False, f"a defect of Ackworth's own ({why}): the verdict is unknown")


def _carry_out(argv: Sequence[str] | None, arguments: argparse.Namespace) -> int:
    _make_streams_ready()
    try:
        words = sys.argv[1:] if argv is None else argv
        parser(words).parse_args(words, arguments)
        return int(arguments.call(arguments))
    finally:
        sys.stdout.flush()  # while it can still be said that this fails


def _fault_of_the_machine(error: OSError) -> str:
    """Most often it is one."""
    if error.filename is None:
        _write_no_more_to(sys.stdout)
    what = f"{error.filename or 'the output'}: {error.strerror}"
    return f"{what}: see whether it is there, may be written, and has room on its disk"


def _make_streams_ready() -> None:
    """One that is closed leads nowhere, instead of to the next file that is opened in its place.

    What a terminal has no sign for becomes a question mark, and is no error.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(nowhere, True)
            setattr(sys, name, os.fdopen(nowhere, mode))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _write_no_more_to(*streams: TextIO) -> None:
    """What still waits to be written would fail once more when Python ends, and change the exit code."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(nowhere, stream.fileno())


def _say(debug: bool, text: str) -> int:
    if debug:
        traceback.print_exc()
    print(f"{CLEAR if sys.stderr.isatty() else ''}ackworth: {text}", file=sys.stderr)
    return 2


def _as_interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())

"""`ackworth`: what is your broker's ack worth?"""

import argparse
import importlib
import signal
import sys
import traceback
from collections.abc import Sequence

import ackworth
from ackworth.model.errors import AckworthError

COMMANDS = ("run", "rerun", "check", "compare", "report", "plans", "brokers", "doctor")
EXIT_CODES = "exit codes: 0 held, 1 broken, 2 unknown or bad input"


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="ackworth",
        description="What is your broker's ack worth? Drives a broker, breaks it, follows every message.",
        epilog=EXIT_CODES,
    )
    top.add_argument("--version", action="version", version=f"ackworth {ackworth.__version__}")
    top.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = importlib.import_module(f"ackworth.cli.{name}")
        command = commands.add_parser(name, help=module.HELP, description=module.HELP, epilog=EXIT_CODES)
        module.arguments(command)
        command.set_defaults(call=module.main)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    before = signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        return int(arguments.call(arguments))
    except AckworthError as error:
        return _say(arguments.debug, str(error))
    except KeyboardInterrupt:
        return _say(arguments.debug, "interrupted")
    except BrokenPipeError:
        return 2  # whoever read our output has gone
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None:  # the machine's fault, most often
            what = f"{error.filename}: {error.strerror}"
            return _say(arguments.debug, f"{what}: see whether it is there, may be written, and has room on its disk")
        traceback.print_exc()
        why = traceback.format_exception_only(error)[-1].strip()  # also of one that cannot say what it is
        return _say(False, f"a defect of Ackworth's own ({why}): the verdict is unknown")
    finally:
        signal.signal(signal.SIGTERM, before)


def _say(debug: bool, text: str) -> int:
    if debug:
        traceback.print_exc()
    print(f"ackworth: {text}", file=sys.stderr)
    return 2


def _as_interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())

"""The conformance suite: what every store must do, whatever it is made of.

    check_store(lambda name: MyStore(directory / f"{name}.db"))

`make(name)` opens the database of that name, and creates it at the first call. Each check uses a database of
its own, and opens it as often as it needs clients. CHECKS holds the checks one by one.
"""

import contextlib
from collections.abc import Callable

from brook.stores.base import Store
from brook.testing import claiming, looking, retrying, sending, sharing, watching
from brook.testing.tools import Check

_PARTS = (sending, claiming, sharing, retrying, looking, watching)
CHECKS: tuple[Check, ...] = tuple(check for part in _PARTS for check in part.CHECKS)


def check_store(make: Callable[[str], Store]) -> None:
    for check in CHECKS:
        run_check(check, make)


def run_check(check: Check, make: Callable[[str], Store]) -> None:
    with contextlib.ExitStack() as stack:

        def open_one() -> Store:
            return stack.enter_context(contextlib.closing(make(check.__name__)))

        check(open_one)

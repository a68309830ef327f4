"""The scribe: a process of low priority that turns finished chunks into segments while a trial runs.

python -m ackworth.run.scribe TRIAL PARENT
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from ackworth.history.settle import convert_finished
from ackworth.load.worker import ENVIRONMENT, die_with
from ackworth.model.errors import AckworthError


class ScribeProcess:
    def __init__(self, trial: Path) -> None:
        self._trial = trial
        self._log = trial / "logs" / "scribe.log"

    def __enter__(self) -> Self:
        with self._log.open("w") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ackworth.run.scribe", str(self._trial.resolve()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stderr=stderr,
                cwd="/",
                env={**os.environ, **ENVIRONMENT},
                start_new_session=True,
            )
        return self

    @property
    def pid(self) -> int:
        return self._process.pid

    def look(self) -> None:
        """Raises if it ended by itself: the record cannot grow."""
        if self._process.poll() is not None:
            words = self._log.read_text(errors="replace").strip().splitlines()
            raise AckworthError(f"the record cannot be written: {words[-1] if words else 'the scribe died'}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """It finishes the segment that it is at."""
        self._process.terminate()
        self._process.wait()


def main() -> int:
    trial, parent = Path(sys.argv[1]), int(sys.argv[2])
    die_with(parent)
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: asked.append(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(19)
    while not asked:
        try:
            worked = convert_finished(trial)
        except (AckworthError, OSError) as error:
            print(error, file=sys.stderr)  # noqa: T201 - the conductor reads it
            return 3
        if not worked:
            time.sleep(0.2)
    return 0


if __name__ == "__main__":
    sys.exit(main())

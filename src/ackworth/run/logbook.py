"""What the conductor itself puts into a trial's record: what is run, marks and samples, how it ended."""

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ackworth.history.lines import Lines
from ackworth.history.meta import End, Trial, write_end, write_trial
from ackworth.history.schema import MARK, SAMPLE
from ackworth.history.settle import settle


class Logbook:
    """Begun with the trial's directory, which must not be there yet."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.spool = directory / "spool"
        self.logs = directory / "logs"

    def begin(self, trial: Trial) -> None:
        self._directory.mkdir(parents=True)
        self.logs.mkdir()
        write_trial(self._directory, trial)
        self._marks, self._samples = Lines(self.spool, MARK), Lines(self.spool, SAMPLE)

    def mark(self, what: str, name: str, node: str, begin: int, end: int, **detail: Any) -> None:
        self._marks.append(what=what, name=name, node=node, t_begin=begin, t_end=end, detail=json.dumps(detail))

    @contextlib.contextmanager
    def phase(self, name: str, **detail: bool) -> Iterator[None]:
        begin = time.monotonic_ns()
        try:
            yield
        finally:
            self.mark("phase", name, "", begin, time.monotonic_ns(), **detail)

    def sample(self, rows: Iterable[Mapping[str, Any]]) -> None:
        for row in rows:
            self._samples.append(**row)

    def end(self, end: End, working: Callable[[str], None]) -> None:
        """Raises OSError on a full disk: whoever judges settles what is in the spool."""
        self._marks.close()
        self._samples.close()
        write_end(self._directory, end)
        settle(self._directory, working)

"""From the spool to segments, so that a crash at any moment neither loses nor doubles an event.

An intent is written before a segment gets its name, and says which chunks are in it. Whoever finds
an intent knows: if the segment has its name, those chunks are done with and go; if not, they stay.
"""

import contextlib
import fcntl
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ackworth.history.lines import path_of, read_lines
from ackworth.history.schema import EVENTS, MARK, ROWS_PER_CHUNK, ROWS_PER_SEGMENT, SAMPLE, Table
from ackworth.history.segment import SegmentWriter, segment_name
from ackworth.history.spool import chunks, read_chunk
from ackworth.model.errors import AckworthError
from ackworth.model.files import write_json

CHUNKS_PER_SEGMENT = ROWS_PER_SEGMENT // ROWS_PER_CHUNK

_LOCK = ".lock"

Numbered = tuple[int, Path]  # a chunk's number and file


def settle(trial: Path, progress: Callable[[str], None] = lambda line: None) -> None:
    """Everything that is left in the spool becomes segments. Nobody may be writing any more.

    Of those who do it at the same time, one does it and the others wait. Raises AckworthError if the disk does not
    let it: then the events are still in the spool.
    """
    try:
        with _alone(trial / "spool") as is_there:
            if is_there:
                _settle(trial, progress)
    except OSError as error:
        raise AckworthError(
            f"{trial}: the record cannot be written ({error.strerror}), its events are safe in the spool: "
            "free some space, then judge it with `ackworth check`"
        ) from error


@contextlib.contextmanager
def _alone(spool: Path) -> Iterator[bool]:
    """Whether there still is a spool when nobody else is at it."""
    if not spool.exists():
        yield False
        return
    with (spool / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield spool.exists()


def _settle(trial: Path, progress: Callable[[str], None]) -> None:
    for table in EVENTS:
        for series, waiting in _by_series(trial, table):
            for start in range(0, len(waiting), CHUNKS_PER_SEGMENT):
                progress(f"writing the record: {table.name} of {series}")
                _convert(trial, table, series, waiting[start : start + CHUNKS_PER_SEGMENT])
    for table in (MARK, SAMPLE):
        _convert_lines(trial, table)
    _clear(trial / "spool")


def convert_finished(trial: Path) -> bool:
    """One segment for each series that has enough finished chunks; True if there was one."""
    found = False
    for table in EVENTS:
        for series, waiting in _by_series(trial, table):
            if len(waiting) > CHUNKS_PER_SEGMENT:  # the last one may still be written
                _convert(trial, table, series, waiting[:CHUNKS_PER_SEGMENT])
                found = True
    return found


def _by_series(trial: Path, table: Table) -> Iterator[tuple[str, list[Numbered]]]:
    _resume(trial, table)
    for series, group in itertools.groupby(chunks(trial / "spool", table), key=lambda chunk: chunk[0]):
        yield series, [(number, path) for _, number, path in group]


def _convert(trial: Path, table: Table, series: str, waiting: Sequence[Numbered]) -> None:
    number = _next_segment(trial, table, series)
    intent = trial / "spool" / table.name / f"{series}.intent"
    write_json(intent, {"series": series, "segment": number, "chunks": [path.name for _, path in waiting]})
    with SegmentWriter(trial / "record", table, series, number) as writer:
        for _, path in waiting:
            writer.write(read_chunk(path, table))
    _discard(intent)


def _resume(trial: Path, table: Table) -> None:
    """Finish or forget what a dead scribe was about to do."""
    for intent in sorted((trial / "spool" / table.name).glob("*.intent")):
        said = json.loads(intent.read_text())
        if (trial / "record" / table.name / segment_name(said["series"], said["segment"])).exists():
            _discard(intent)
        else:
            intent.unlink()


def _discard(intent: Path) -> None:
    for name in json.loads(intent.read_text())["chunks"]:
        (intent.parent / name).unlink(missing_ok=True)
    intent.unlink()


def _next_segment(trial: Path, table: Table, series: str) -> int:
    numbers = itertools.count()
    return next(n for n in numbers if not (trial / "record" / table.name / segment_name(series, n)).exists())


def _convert_lines(trial: Path, table: Table) -> None:
    rows = read_lines(trial / "spool", table)
    if rows:
        with SegmentWriter(trial / "record", table, "conductor") as writer:
            writer.write({name: [row[name] for row in rows] for name in table.names})
    path_of(trial / "spool", table).unlink(missing_ok=True)


def _clear(spool: Path) -> None:
    """An empty spool is of no use to anybody; one that still holds something stays.

    A chunk that was never given its name has no rows: its writer was killed while it made it.
    """
    for unfinished in spool.glob("*/.*.chunk.new"):
        unfinished.unlink()
    for folder in (folder for folder in spool.glob("*/") if not any(folder.iterdir())):
        folder.rmdir()
    if {path.name for path in spool.glob("*")} <= {_LOCK}:
        (spool / _LOCK).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # somebody who came late has its own lock in it, and clears it
            spool.rmdir()

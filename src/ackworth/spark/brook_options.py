"""What `spark.read.format("brook")` can be told. Spark's options are texts; here they become what they mean."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ackworth.model.errors import BadInput
from ackworth.model.words import nearest
from brook import Brook

Position = Literal["earliest", "latest"] | int

_ROWS_PER_PARTITION = 100_000
_BOTH = ("url", "topic", "startingOffset", "rowsPerPartition")
_BATCH = (*_BOTH, "endingOffset")
_STREAM = (*_BOTH, "maxRowsPerTrigger", "failOnDataLoss")


@dataclass(frozen=True, kw_only=True)
class Options:
    url: str
    topic: str
    starting: Position
    ending: Position
    rows_per_partition: int
    rows_per_trigger: int | None  # None: all that is there
    fail_on_data_loss: bool

    def __str__(self) -> str:
        return f"topic '{self.topic}' of {self.url}"

    def open(self) -> Brook:
        """The queue, which must be there; nothing is made on the way."""
        return Brook(self.url, client="spark", create=False, auto_create=False)


def read_options(given: Mapping[str, str], *, streaming: bool) -> Options:
    """Raises BadInput."""
    texts = {name.lower(): text for name, text in given.items()}
    known = {name.lower(): name for name in (_STREAM if streaming else _BATCH)}
    for name in texts.keys() - known.keys():
        kind = "stream" if streaming else "batch"
        raise BadInput(f"a {kind} of brook has no option '{name}'{nearest(name, known.values())}")
    options = Options(
        url=_required(texts, "url"),
        topic=_required(texts, "topic"),
        starting=_position(texts, "startingOffset", "earliest"),
        ending=_position(texts, "endingOffset", "latest"),
        rows_per_partition=_count(texts, "rowsPerPartition") or _ROWS_PER_PARTITION,
        rows_per_trigger=_count(texts, "maxRowsPerTrigger"),
        fail_on_data_loss=_flag(texts, "failOnDataLoss"),
    )
    if isinstance(options.starting, int) and isinstance(options.ending, int) and options.starting > options.ending:
        raise BadInput(f"startingOffset {options.starting} is behind endingOffset {options.ending}: swap them")
    return options


def _required(texts: Mapping[str, str], name: str) -> str:
    if not texts.get(name):
        raise BadInput(f"option '{name}' is missing: give it, as in .option('{name}', ...)")
    return texts[name]


def _position(texts: Mapping[str, str], name: str, default: Position) -> Position:
    text = texts.get(name.lower(), default)
    if text in ("earliest", "latest"):
        return text  # type: ignore[return-value]
    if not str(text).isdecimal():
        raise BadInput(f"option '{name}' is '{text}': give earliest, latest, or an offset from 0 on")
    return int(text)


def _count(texts: Mapping[str, str], name: str) -> int | None:
    text = texts.get(name.lower())
    if text is not None and (not text.isdecimal() or int(text) == 0):
        raise BadInput(f"option '{name}' is '{text}': give a number of rows above 0")
    return None if text is None else int(text)


def _flag(texts: Mapping[str, str], name: str) -> bool:
    text = texts.get(name.lower(), "true").lower()
    if text not in ("true", "false"):
        raise BadInput(f"option '{name}' is '{text}': give true or false")
    return text == "true"

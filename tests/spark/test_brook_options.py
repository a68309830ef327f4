"""What the data source can be told, and what it says to what it cannot."""

import pytest

from ackworth.model.errors import BadInput
from ackworth.spark.brook_options import Options, read_options

GIVEN = {"url": "sqlite:///queue.db", "topic": "t"}


def test_defaults() -> None:
    assert read_options(GIVEN, streaming=True) == Options(
        url="sqlite:///queue.db",
        topic="t",
        starting="earliest",
        ending="latest",
        rows_per_partition=100_000,
        rows_per_trigger=None,
        fail_on_data_loss=True,
    )


def test_names_in_any_case() -> None:
    options = read_options({**GIVEN, "STARTINGOFFSET": "7", "endingoffset": "9"}, streaming=False)
    assert (options.starting, options.ending) == (7, 9)


@pytest.mark.parametrize(
    ("options", "streaming", "said"),
    [
        ({"topic": ""}, False, "option 'topic' is missing: give it, as in .option('topic', ...)"),
        ({"startingOffsets": "3"}, False, "a batch of brook has no option 'startingoffsets': did you mean"),
        ({"failOnDataLoss": "true"}, False, "a batch of brook has no option 'failondataloss'"),
        ({"endingOffset": "3"}, True, "a stream of brook has no option 'endingoffset'"),
        ({"startingOffset": "-1"}, False, "option 'startingOffset' is '-1': give earliest, latest, or an offset"),
        ({"startingOffset": "3", "endingOffset": "2"}, False, "startingOffset 3 is behind endingOffset 2: swap them"),
        ({"rowsPerPartition": "0"}, False, "option 'rowsPerPartition' is '0': give a number of rows above 0"),
        ({"failOnDataLoss": "maybe"}, True, "option 'failOnDataLoss' is 'maybe': give true or false"),
    ],
)
def test_wrong_options(options: dict[str, str], streaming: bool, said: str) -> None:
    with pytest.raises(BadInput) as raised:
        read_options({**GIVEN, **options}, streaming=streaming)
    assert said in str(raised.value)

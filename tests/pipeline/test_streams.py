"""Order within streams, over chunks and seams."""

from typing import Any

import numpy as np
import pytest

from ackworth.history.reader import RowGroup
from ackworth.pipeline.context import Context
from ackworth.pipeline.ids import Ids
from ackworth.pipeline.rows import Rows
from ackworth.pipeline.streams import Streams, carried_into
from ackworth.testing.histories import trial


def chunk(context: Context, *ids: tuple[int, int, int]) -> Rows:
    """Rows of (producer, topic, seq)."""
    producers, topics, seqs = (np.array(column, np.int64) for column in zip(*ids, strict=True))
    columns: dict[str, Any] = {"producer": producers.astype(np.int16), "topic": topics.astype(np.int16), "seq": seqs}
    return Rows(context, RowGroup("", "delivered", "0", 0, 0, len(ids), {}), columns, len(ids))


@pytest.fixture(params=[3, 150_000], ids=["few streams", "many streams"])
def context(request: pytest.FixtureRequest) -> Context:
    return Context(trial(producers=3, topics=request.param), (), Ids((100, 100, 100)))


def test_in_order(context: Context) -> None:
    streams = Streams(context)
    assert streams.late(chunk(context, (0, 0, 1), (1, 0, 0), (0, 1, 0), (0, 0, 2))) is None
    assert streams.late(chunk(context, (0, 0, 3), (0, 1, 1))) is None


def test_late_within_a_chunk_and_after_it(context: Context) -> None:
    streams = Streams(context)
    late = streams.late(chunk(context, (0, 0, 5), (0, 1, 1), (0, 0, 3), (0, 0, 4), (0, 0, 6)))
    assert late is not None
    assert late.tolist() == [False, False, True, True, False]
    late = streams.late(chunk(context, (0, 0, 2), (0, 0, 7), (2, 2, 0)))
    assert late is not None
    assert late.tolist() == [True, False, False]


def test_a_repeat_of_the_last_is_not_late(context: Context) -> None:
    late = Streams(context).late(chunk(context, (0, 0, 5), (0, 0, 5)))
    assert late is not None
    assert not late.any()


def test_what_is_carried_in(context: Context) -> None:
    streams = Streams(context)
    streams.carry(np.array([0]), np.array([6]))  # producer 0, topic 0 had got to seq 5
    late = streams.late(chunk(context, (0, 0, 4), (0, 0, 6)))
    assert late is not None
    assert late.tolist() == [True, False]
    assert [column.tolist() for column in streams.summary()] == [[0], [5], [7]]


def test_seams() -> None:
    # Three row groups of one consumer: stream 1 reaches 9, then starts at 4; stream 2 rises.
    streams, highest = np.array([1, 2, 1, 2, 1]), np.array([9, 3, 7, 5, 8])
    assert carried_into(streams, highest).tolist() == [0, 0, 9, 3, 9]

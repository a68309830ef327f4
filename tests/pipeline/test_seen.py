"""Sets of places that add up, whatever comes in whatever chunks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackworth.pipeline.compressed import compress
from ackworth.pipeline.ids import BUCKET, Ids, PlaceSet, pack, places_in
from ackworth.pipeline.seen import Came, Seen

_ANYWHERE, _CLOSE = st.integers(0, 2 * BUCKET - 1), st.integers(BUCKET - 9, BUCKET + 9)


@given(st.lists(st.one_of(st.lists(_ANYWHERE), st.lists(_CLOSE), st.lists(_CLOSE, unique=True)), max_size=4))
def test_what_came_once_and_again(chunks: list[list[int]]) -> None:
    together, counted, apart = Seen(2), Seen(2), [Seen(2) for _ in chunks]
    for chunk, alone in zip(chunks, apart, strict=True):
        together.add(np.array(chunk, np.int64))
        counted.add(np.array(chunk, np.int64), copies=max(map(chunk.count, chunk), default=0))
        alone.add(np.array(chunk, np.int64))
    everything = [place for chunk in chunks for place in chunk]
    expected = set(everything), {place for place in everything if everything.count(place) > 1}
    assert _sets(dict(together.buckets())) == expected
    assert _sets(dict(counted.buckets())) == expected
    merged: dict[int, Came] = {}
    for alone in apart:
        for bucket, came in alone.buckets():
            merged[bucket] = merged[bucket] | came if bucket in merged else came
    assert _sets(merged) == expected


@pytest.mark.parametrize("times", [2, 253, 254, 255, 256, 257, 512, 1000])
def test_what_comes_very_often_is_not_forgotten(times: int) -> None:
    seen = Seen(2)
    for _ in range(3):
        seen.add(np.full(times, 7), copies=times)
        seen.add(np.array([3, 9, 5]), copies=1)
    assert _sets(dict(seen.buckets())) == ({3, 5, 7, 9}, {3, 5, 7, 9})


def test_a_run_over_a_bucket_and_over_itself() -> None:
    seen = Seen(2)
    seen.add(np.arange(BUCKET - 2, BUCKET + 2))
    seen.add(np.arange(BUCKET, BUCKET + 4))
    once, again = _sets(dict(seen.buckets()))
    assert once == set(range(BUCKET - 2, BUCKET + 4))
    assert again == {BUCKET, BUCKET + 1}


def _sets(buckets: dict[int, Came]) -> tuple[set[int], set[int]]:
    once = {place for bucket, came in buckets.items() for place in places_in(bucket, came.once).tolist()}
    again = {
        place
        for bucket, came in buckets.items()
        if came.again is not None
        for place in places_in(bucket, came.again).tolist()
    }
    return once, again


def test_ids_that_were_never_sent_have_no_place() -> None:
    ids = Ids((3, 0, 2))
    producers = np.array([0, 0, 0, 1, 2, 2, -1, 3, 32767], np.int16)
    seqs = np.array([0, 2, 3, 0, 1, 2**62, 0, 0, -1], np.int64)
    assert ids.places(producers, seqs).tolist() == [0, 2, -1, -1, 4, -1, -1, -1, -1]
    assert ids.names(np.array([0, 2, 3, 4])) == ["0/0", "0/2", "2/0", "2/1"]


def test_bounds_say_whether_all_have_a_place() -> None:
    ids = Ids((3, 2))
    assert ids.cover((0, 1), (0, 1))
    assert ids.cover((0, 0), (0, 2))
    assert not ids.cover((0, 1), (0, 2))
    assert not ids.cover((-1, 1), (0, 1))
    assert not ids.cover((0, 2), (0, 1))
    assert not ids.cover((0, 1), (-1, 1))


def test_a_set_of_places() -> None:
    flags = np.zeros(BUCKET, np.bool_)
    flags[[1, 5]] = True
    places = PlaceSet({1: compress(pack(flags).tobytes())})
    assert places.first(1).tolist() == [BUCKET + 1]
    assert places.first(9).tolist() == [BUCKET + 1, BUCKET + 5]
    assert np.flatnonzero(places.flags(Ids((2 * BUCKET,)))).tolist() == [BUCKET + 1, BUCKET + 5]
    assert not places.bits(0).any()

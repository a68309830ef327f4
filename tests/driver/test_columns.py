"""Columns of frames: numbers, names, and what stands in all frames of a shape."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackworth.driver.codec.columns import (
    BatchWriter,
    Bytes,
    Names,
    Rows,
    Shape,
    are_digits,
    between,
    decimal,
    leading,
    numbers,
)


def rows(*texts: bytes) -> Bytes:
    return np.frombuffer(b"".join(texts), np.uint8).reshape(len(texts), -1)


@given(st.lists(st.integers(0, 10**18 - 1), min_size=1), st.integers(1, 18))
def test_numbers_are_written_and_read(values: list[int], digits: int) -> None:
    short = [value % 10**digits for value in values]
    text = decimal(np.array(short), digits)
    assert [row.tobytes() for row in text] == [b"%0*d" % (digits, value) for value in short]
    assert are_digits(text).all() and numbers(text).tolist() == short


def test_what_is_no_digit() -> None:
    assert are_digits(rows(b"09", b"0/", b":0", b"\xff1")).tolist() == [True, False, False, False]


def test_names_are_found_or_none() -> None:
    names = Names(["s.b", "s.a", "s.longer"])
    assert names.find(rows(b"s.a", b"s.b", b"s.a")).tolist() == [1, 0, 1]
    assert names.find(rows(b"s.longer")).tolist() == [2]
    for name in (b"s.c", b"t.a", b"s.longes", b"s.lon", b"zzz"):
        with pytest.raises(LookupError, match=f"{name.decode()} is no topic"):
            names.find(rows(name))


def test_names_of_others_are_not_ours() -> None:
    names = Names(["s.b", "s.a"], others="s.")
    assert names.find(rows(b"s.a", b"s.c", b"s.b")).tolist() == [1, -1, 0]
    with pytest.raises(LookupError, match="is no topic"):
        names.find(rows(b"t.a"))


def test_text_is_put_around_each_row() -> None:
    assert between(b"<", rows(b"ab", b"cd"), b">\n").tobytes() == b"<ab>\n<cd>\n"


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (b"<ab>\0<cd>\0", 2),
        (b"<ab>\0<cd>", 1),
        (b"<ab>\0<c\n>\0", 1),  # no word
        (b"<ab>x<cd>\0", 0),  # the text ends with a NUL, and this does not
        (b"<ab>\0(cd>\0<ef>\0", 1),
        (b"", 0),
    ],
)
def test_frames_of_a_shape_are_those_before_the_first_of_another(data: bytes, count: int) -> None:
    shape = Shape(length=5, texts=((0, b"<"), (3, b">\0")), words=(slice(1, 3),))
    assert shape.rows(data, 0) == Rows(data, 0, 5, count)


def test_how_many_are_true_at_the_beginning() -> None:
    assert [leading(np.array(fits, bool)) for fits in ([], [1], [0], [1, 1, 0, 1])] == [0, 1, 0, 2]


MESSAGES = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([1, 9, 12])), min_size=1, max_size=3)


@given(st.lists(MESSAGES, min_size=1, max_size=6), st.sampled_from([["a", "b", "c"], ["a", "bb", "ccc"]]))
def test_a_batch_is_written_the_same_whatever_was_written_before(
    batches: list[list[tuple[int, int]]], heads: list[str]
) -> None:
    writer = BatchWriter([head.encode() for head in heads], digits=3, middle=b" ", after=b":", end=b";")
    for number, batch in enumerate(batches):
        topics, sizes = (np.array(column, np.int64) for column in zip(*batch, strict=True))
        bodies = np.full((len(batch), 16), ord("0") + number, np.uint8)
        frames = [
            b"%b%03d %d:%b;" % (heads[topic].encode(), 10 * number + i, size, b"%d" % number * size)
            for i, (topic, size) in enumerate(batch)
        ]
        assert writer.encode(10 * number, topics, bodies, sizes).tobytes() == b"".join(frames)

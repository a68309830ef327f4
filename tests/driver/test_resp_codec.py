"""The codec of RESP: what is written can be read, and any bytes in any split are read alike or are no RESP."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ackworth.driver.codec.redis_streams import Deliveries, appends
from ackworth.driver.codec.resp import BadReply, Error, Value, bulk, command, count_strings, parse
from tests.driver.pieces import damage, outcome_or, split

TOPICS = ["a", "topic-1", "topic-22"]


def encode(value: Value) -> bytes:
    match value:
        case None:
            return b"$-1\r\n"
        case int():
            return b":%d\r\n" % value
        case bytes():
            return bulk(value)
        case Error(text):
            return b"-" + text.encode() + b"\r\n"
        case _:
            return b"*%d\r\n" % len(value) + b"".join(map(encode, value))


errors = st.builds(Error, st.text(st.characters(codec="ascii", exclude_characters="\r\n")))
scalars = st.none() | st.integers(-(10**18), 10**18) | st.binary(max_size=40) | errors
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4), max_leaves=12)


def every(data: bytes) -> list[Value]:
    """All values, read one by one."""
    found, at = [], 0
    while (one := parse(data, at)) is not None:
        found.append(one[0])
        at = one[1]
    assert at == len(data)
    return found


def piecemeal(data: bytes, cuts: list[int]) -> Iterator[Value]:
    """The values as they come when the bytes come in pieces."""
    buffer = b""
    for piece in split(data, cuts):
        buffer += piece
        while (one := parse(buffer, 0)) is not None:
            yield one[0]
            buffer = buffer[one[1] :]


outcome = partial(outcome_or, BadReply)


@given(st.lists(values))
def test_what_is_written_is_read(written: list[Value]) -> None:
    assert every(b"".join(map(encode, written))) == written


# Bytes of which many are RESP, or nearly.
pieces = st.sampled_from(
    [b"$", b"*", b":", b"+", b"-", b"\r\n", b"\r", b"\n", b"0", b"1", b"2", b"15", b"-1", b"x", b"b"]
)
nearly = st.lists(pieces | st.binary(max_size=3) | values.map(encode), max_size=12).map(b"".join)
cuts = st.lists(st.integers(0, 200), max_size=6)


@given(nearly, cuts)
@example(b"$3\r\nabcde", [5])
@example(b"+a\rb", [3])
def test_any_split_of_any_bytes_reads_alike_or_not_at_all(data: bytes, cuts: list[int]) -> None:
    assert outcome(lambda: list(piecemeal(data, cuts))) == outcome(lambda: list(piecemeal(data, [])))


@pytest.mark.parametrize(
    "data",
    [
        b"?\r\n",
        b"$01\r\na\r\n",
        b":1x\r\n",
        b"$-2\r\n",
        b"$1\r\nabc",
        b"*99999999999\r\n",
        b"+" + b"x" * 70_000,
        b"*1\r\n" * 9,
    ],
)
def test_what_is_no_resp_says_so(data: bytes) -> None:
    with pytest.raises(BadReply):
        parse(data, 0)


answers = st.integers(0, 120).flatmap(lambda n: st.binary(min_size=n, max_size=n)).map(bulk)
ids = st.from_regex(rb"[0-9]{13}-[0-9]{1,6}", fullmatch=True).map(bulk)


@given(st.lists(ids | answers | nearly, max_size=30).map(b"".join), st.integers(0, 30))
@example(b"$12\r\n1234567890-1\r\n", 0)
@example(b"$10\r\nabc\n567890\r\n", 0)
def test_strings_counted_in_bulk_are_the_strings_that_are_there(data: bytes, at: int) -> None:
    at = min(at, len(data))
    count, end = count_strings(data, at)
    for _ in range(count):
        found = parse(data, at)
        assert found is not None and isinstance(found[0], bytes)
        at = found[1]
    assert at == end


def test_usual_answers_are_all_counted_in_bulk() -> None:
    data = b"".join(bulk(b"1731716255123-%d" % i) for i in range(2000))
    assert count_strings(data + b"$15\r\n17", 0) == (2000, len(data))


@given(st.lists(st.tuples(st.integers(0, 2), st.binary(min_size=1, max_size=120)), min_size=1))
def test_appends_are_the_commands_one_by_one(messages: list[tuple[int, bytes]]) -> None:
    sizes = np.array([len(body) for _, body in messages])
    width = int(sizes.max())
    bodies = np.frombuffer(b"".join(body.ljust(width, b"\0") for _, body in messages), np.uint8).reshape(-1, width)
    encoded = appends(TOPICS).encode(0, np.array([topic for topic, _ in messages]), bodies, sizes)
    assert encoded.tobytes() == b"".join(command("XADD", TOPICS[t], "*", "b", body) for t, body in messages)


# ---- XREADGROUP --------------------------------------------------------------------------------------------

entry_ids = st.tuples(st.integers(0, 1 << 42), st.integers(0, 1 << 19))
alike = st.tuples(entry_ids, st.binary(min_size=8, max_size=8))
entries = st.lists(alike | st.tuples(entry_ids, st.binary(max_size=20) | st.none()), max_size=8)
streams = st.lists(st.tuples(st.sampled_from([b"a", b"topic-1"]), entries), min_size=1, max_size=4)
Streams = list[tuple[bytes, list[tuple[tuple[int, int], bytes | None]]]]


def reply(found: Streams) -> bytes:
    return encode(
        [
            [topic, [[b"%d-%d" % name, None if body is None else [b"b", body]] for name, body in entries]]
            for topic, entries in found
        ]
    )


def delivered(data: bytes, cuts: list[int]) -> object:
    """What comes out, entry by entry; None as long as it is not all there."""
    deliveries, buffer = Deliveries(), b""
    for piece in split(data, cuts):
        buffer += piece
        buffer = buffer[deliveries.take(buffer) :]
    flat = [(e.topic, p, b.tobytes()) for e in deliveries.found for p, b in zip(e.positions, e.bodies, strict=True)]
    names = b"".join(entries.ids for entries in deliveries.found)
    return flat, names, deliveries.error, deliveries.timed_out, deliveries.done


@given(streams, cuts)
def test_deliveries_are_the_entries_one_by_one(found: Streams, cuts: list[int]) -> None:
    everything = [(topic, name, body) for topic, entries in found for name, body in entries]
    flat = [(topic, (name[0] << 20) + name[1], body) for topic, name, body in everything if body is not None]
    names = b"".join(bulk(b"%d-%d" % name) for _, name, _ in everything)
    assert delivered(reply(found), cuts) == (flat, names, None, False, True)


@given(streams.map(reply), st.integers(0, 300), st.integers(0, 255), cuts)
def test_a_damaged_delivery_reads_alike_in_any_split_or_not_at_all(
    data: bytes, place: int, byte: int, cuts: list[int]
) -> None:
    damaged = damage(data, place, byte)
    assert outcome(lambda: delivered(damaged, cuts)) == outcome(lambda: delivered(damaged, []))


@given(nearly, cuts)
def test_any_bytes_as_a_delivery(data: bytes, cuts: list[int]) -> None:
    assert outcome(lambda: delivered(data, cuts)) == outcome(lambda: delivered(data, []))


@pytest.mark.parametrize(
    "name", [b"", b"-", b"1", b"1-2-3", b"x-1", b"1-x", b"-1-1", b"9999999999999-1", b"9" * 40 + b"-1"]
)
def test_what_is_no_id_says_so(name: bytes) -> None:
    one = encode([name, [b"b", b"body"]])
    usual = encode([b"1".rjust(len(name) - 2, b"1") + b"-1", [b"b", b"body"]])  # of the same shape, if there is one
    for first in (b"", usual):
        with pytest.raises(BadReply):
            Deliveries().take(b"*1\r\n*2\r\n$1\r\na\r\n*2\r\n" + first + one)


def test_no_delivery_and_an_error() -> None:
    assert delivered(b"*-1\r\n", []) == ([], b"", None, True, True)
    assert delivered(b"-NOGROUP no such group\r\n", []) == ([], b"", Error("NOGROUP no such group"), False, True)


def test_usual_entries_are_read_as_rows() -> None:
    found = reply([(b"a", [((1731716255123, i), b"x" * 128) for i in range(1000)])])
    deliveries = Deliveries()
    deliveries.take(found)
    assert deliveries.done and len(deliveries.found) <= 9  # the first of each length, and the others

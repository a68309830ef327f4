"""The codec of STOMP: what is written can be read, and any bytes in any split are read alike or are no STOMP."""

from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ackworth.driver.codec.stomp import BadFrame, Frames, Reader, frame
from tests.driver.pieces import byte_by_byte, damage, in_pieces, outcome_or

Seen = tuple[bytes, dict[bytes, bytes], bytes]

values = st.binary(max_size=5).filter(lambda value: b"\n" not in value)
names = st.sampled_from([b"receipt-id", b"destination", b"ack", b"timestamp", b"priority", b"x"])
bodies = st.binary(max_size=12) | st.binary(min_size=8, max_size=8)


@st.composite
def frames(draw: st.DrawFn) -> tuple[bytes, Seen]:
    """A frame as it is sent, and as it is read."""
    command = draw(st.sampled_from([b"MESSAGE", b"RECEIPT", b"ERROR", b"CONNECTED"]))
    headers, body = draw(st.dictionaries(names, values, max_size=3)), draw(bodies)
    if b"\0" in body or draw(st.booleans()):
        headers[b"content-length"] = b"%d" % len(body)
    lines = b"".join(b"%b:%b\n" % pair for pair in headers.items())
    newlines = b"\n" * draw(st.integers(0, 2))
    return b"%b%b\n%b\n%b\0" % (newlines, command, lines, body), (command, headers, body)


pieces = st.sampled_from(
    [b"MESSAGE\n", b"RECEIPT\n", b"\n", b"\0", b":", b"content-length:", b"1", b"2", b"\n\n", b"a:b\n"]
)
nearly = st.lists(pieces | st.binary(max_size=3) | frames().map(lambda f: f[0]), max_size=10).map(b"".join)
cuts = st.lists(st.integers(0, 300), max_size=6)


def read(data: bytes, cuts: list[int]) -> list[Seen]:
    return [one for run in in_pieces(Reader(), data, cuts) for one in seen(run)]


def one_by_one(data: bytes) -> list[Seen]:
    return [one for run in byte_by_byte(Reader(), data) for one in seen(run)]


def seen(run: Frames) -> list[Seen]:
    headers = [{name: run.values(name)[i].tobytes() for name in run.shape.headers} for i in range(len(run))]
    return [(run.command, headers[i], run.bodies[i].tobytes()) for i in range(len(run))]


outcome = partial(outcome_or, BadFrame)


@given(st.lists(frames(), max_size=8), cuts)
def test_what_is_written_is_read(written: list[tuple[bytes, Seen]], cuts: list[int]) -> None:
    assert read(b"".join(data for data, _ in written), cuts) == [frame for _, frame in written]


@given(nearly, cuts)
@example(b"MESSAGE\n\nab\0MESSAGE\n\na\0", [])
@example(b"RECEIPT\nack:abc\n\n\0RECEIPT\nack:a\n\n\n\n\0", [])  # the second has a body
@example(b"MESSAGE\ncontent-length:1\n\nab", [27])
def test_any_split_of_any_bytes_reads_alike_or_not_at_all(data: bytes, cuts: list[int]) -> None:
    assert outcome(lambda: read(data, cuts)) == outcome(lambda: read(data, [])) == outcome(lambda: one_by_one(data))


@given(st.lists(frames(), min_size=1, max_size=6), st.integers(0, 400), st.integers(0, 255), cuts)
def test_damaged_frames_read_alike_in_any_split(
    written: list[tuple[bytes, Seen]], place: int, byte: int, cuts: list[int]
) -> None:
    data = damage(b"".join(data for data, _ in written), place, byte)
    assert outcome(lambda: read(data, cuts)) == outcome(lambda: read(data, [])) == outcome(lambda: one_by_one(data))


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 400 Bad Request\n\n",
        b"MESSAGE\nno header\n\n\0",
        b"MESSAGE\ncontent-length:-1\n\n\0",
        b"MESSAGE\ncontent-length:999999999\n\n\0",
        b"MESSAGE\ncontent-length:1\n\nab",
        b"x" * 70_000,
    ],
)
def test_what_is_no_stomp_says_so(data: bytes) -> None:
    with pytest.raises(BadFrame):
        list(Reader().take(data))


def test_usual_frames_are_read_as_rows() -> None:
    receipts = b"".join(b"RECEIPT\nreceipt-id:%012d\n\n\0\n" % i for i in range(1000))
    assert [len(found) for found in Reader().take(receipts)] == [1, 1, 998]  # the first has no newline before it
    messages = b"".join(
        b"\nMESSAGE\ncontent-length:4\ndestination:/queue/topic-%03d\nack:%06d\n\nbo\0y\0" % (i % 7, i)
        for i in range(1000)
    )
    assert [len(found) for found in Reader().take(messages)] == [1, 999]


def test_values_are_unescaped_when_they_are_wanted() -> None:
    [found] = Reader().take(b"ERROR\nmessage:a\\cb\\nc\\\\n\\x\n\n\0")
    assert found.value(b"message") == "a:b\nc\\n\\x"
    assert found.values(b"message")[0].tobytes() == b"a\\cb\\nc\\\\n\\x"
    assert found.value(b"none") == ""
    with pytest.raises(BadFrame, match="ERROR without the header 'none'"):
        found.values(b"none")


def test_a_frame_is_written() -> None:
    said = frame("SUBSCRIBE", id=0, accept_version="1.2", activemq__prefetchSize=5)
    assert said == b"SUBSCRIBE\nid:0\naccept-version:1.2\nactivemq.prefetchSize:5\n\n\0"

"""The codec of NATS: what is written can be read, and any bytes in any split are read alike or are no NATS."""

import json
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ackworth.driver.codec import jetstream
from ackworth.driver.codec.nats import BadFrame, Control, Messages, Reader, Status
from tests.driver.pieces import byte_by_byte, damage, in_pieces, outcome_or

Seen = tuple[bytes, ...]
TOPICS = ["a", "topic-1", "topic-22"]

words = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=8).map(str.encode)
bodies = st.binary(max_size=12) | st.binary(min_size=8, max_size=8)


@st.composite
def messages(draw: st.DrawFn) -> tuple[bytes, Seen]:
    """A message as it is sent, and as it is read."""
    subject, reply, body = draw(words), draw(words | st.just(b"")), draw(bodies)
    return b"MSG %b 1 %b %d\r\n%b\r\n" % (subject, reply, len(body), body), (b"MSG", subject, reply, body)


@st.composite
def statuses(draw: st.DrawFn) -> tuple[bytes, Seen]:
    subject, text, body = draw(words), draw(words), draw(bodies)
    headers = b"NATS/1.0 %b\r\nA: b\r\n\r\n" % text
    size = len(headers) + len(body)
    return b"HMSG %b 1 %d %d\r\n%b%b\r\n" % (subject, len(headers), size, headers, body), (b"HMSG", subject, text)


controls = st.sampled_from([b"PING", b"PONG", b"+OK", b"INFO {}", b"-ERR 'Stale Connection'"]).map(
    lambda line: (line + b"\r\n", tuple(line.partition(b" ")[::2]))
)
frames = st.lists(messages() | statuses() | controls, max_size=8)
pieces = st.sampled_from(
    [b"MSG ", b"HMSG ", b"a", b" ", b"1", b"2", b"\r\n", b"\r", b"\n", b"PING", b"NATS/1.0", b"\0"]
)
nearly = st.lists(pieces | st.binary(max_size=3) | (messages() | controls).map(lambda m: m[0]), max_size=10).map(
    b"".join
)
cuts = st.lists(st.integers(0, 300), max_size=6)


def read(data: bytes, cuts: list[int]) -> list[Seen]:
    return [one for frame in in_pieces(Reader(), data, cuts) for one in seen(frame)]


def one_by_one(data: bytes) -> list[Seen]:
    return [one for frame in byte_by_byte(Reader(), data) for one in seen(frame)]


def seen(frame: Control | Status | Messages) -> list[Seen]:
    if isinstance(frame, Control):
        return [(frame.word, frame.rest)]
    if isinstance(frame, Status):
        return [(b"HMSG", frame.subject, frame.text.encode())]
    columns = zip(frame.subjects, frame.replies, frame.bodies, strict=True)
    return [(b"MSG", *(part.tobytes() for part in row)) for row in columns]


outcome = partial(outcome_or, BadFrame)


@given(frames, cuts)
def test_what_is_written_is_read(written: list[tuple[bytes, Seen]], cuts: list[int]) -> None:
    assert read(b"".join(data for data, _ in written), cuts) == [frame for _, frame in written]


@given(nearly, cuts)
@example(b"MSG a 1 1\r\nxy", [12])
@example(b"MSG ab 1 0\r\n\r\nMSG a  1 0\r\n\r\n", [])  # the second is shorter than it looks
def test_any_split_of_any_bytes_reads_alike_or_not_at_all(data: bytes, cuts: list[int]) -> None:
    assert outcome(lambda: read(data, cuts)) == outcome(lambda: read(data, [])) == outcome(lambda: one_by_one(data))


@given(st.lists(messages(), min_size=1, max_size=6), st.integers(0, 400), st.integers(0, 255), cuts)
def test_damaged_messages_read_alike_in_any_split_and_one_by_one(
    written: list[tuple[bytes, Seen]], place: int, byte: int, cuts: list[int]
) -> None:
    data = damage(b"".join(data for data, _ in written), place, byte)
    assert outcome(lambda: read(data, cuts)) == outcome(lambda: read(data, [])) == outcome(lambda: one_by_one(data))


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 400 Bad Request\r\n",
        b"MSG a 1\r\n",
        b"MSG a 1 b c 2\r\n",
        b"MSG a\x01 1 2\r\n",
        b"MSG a 1 01\r\n",
        b"MSG a 1 -1\r\n",
        b"MSG a 1 99999999\r\n",
        b"MSG a 1 2\r\nabc",
        b"HMSG a 1 9 2\r\nab\r\n",
        b"HMSG a 1 4 4\r\nab\r\n\r\n",
        b"x" * 70_000,
    ],
)
def test_what_is_no_nats_says_so(data: bytes) -> None:
    with pytest.raises(BadFrame):
        list(Reader().take(data))


def test_usual_messages_are_read_as_rows() -> None:
    data = b"".join(b"MSG s.topic-%03d 1 $JS.ACK.%04d 4\r\nbody\r\n" % (i % 7, i) for i in range(1000))
    assert [len(found) for found in Reader().take(data) if isinstance(found, Messages)] == [1, 999]


# ---- JetStream ---------------------------------------------------------------------------------------------


def answers(*said: tuple[int, bytes]) -> list[Messages]:
    data = b"".join(b"MSG _ACK.x.%012d 1  %d\r\n%b\r\n" % (i, len(body), body) for i, body in said)
    return [frame for frame in Reader().take(data) if isinstance(frame, Messages)]


@given(st.lists(st.tuples(st.integers(0, 2), st.binary(max_size=120)), min_size=1), st.integers(0, 10**11))
def test_publishes_are_the_messages_one_by_one(sent: list[tuple[int, bytes]], first: int) -> None:
    sizes = np.array([len(body) for _, body in sent])
    width = max(1, int(sizes.max()))
    matrix = np.frombuffer(b"".join(body.ljust(width, b"\0") for _, body in sent), np.uint8).reshape(-1, width)
    writer = jetstream.publishes("s", TOPICS, "_ACK.x")
    for _ in range(2):  # the second time it writes over what it wrote the first time
        encoded = writer.encode(first, np.array([topic for topic, _ in sent]), matrix, sizes)
        assert encoded.tobytes() == b"".join(
            b"PUB s.%b _ACK.x.%012d %d\r\n%b\r\n" % (TOPICS[topic].encode(), first + i, len(body), body)
            for i, (topic, body) in enumerate(sent)
        )


acks = st.integers(1, 10**6).map(lambda seq: b'{"stream":"s", "seq":%d}' % seq)
refusals = st.sampled_from(
    [b'{"error":{"description":"no"},"stream":"s","seq":0}', b'{"seq":0,"error":{"description":""}}']
)


@given(st.lists(acks | refusals, min_size=1, max_size=30))
def test_acks_in_bulk_are_what_they_are_one_by_one(said: list[bytes]) -> None:
    found = answers(*enumerate(said))
    assert np.concatenate([jetstream.numbers_of(messages) for messages in found]).tolist() == list(range(len(said)))
    stored = np.concatenate([jetstream.are_acks(messages) for messages in found])
    assert stored.tolist() == [jetstream.why_not(body) is None for body in said]


def test_an_ack_of_a_shape_that_is_not_usual_is_not_taken_for_one() -> None:
    usual, no_number, elsewhere = (
        b'{"stream":"%b", "seq":%b}' % pair for pair in ((b"s", b"12"), (b"s", b"1x"), (b"t", b"12"))
    )
    [first, rest] = answers(*enumerate([usual, usual, no_number, elsewhere]))
    assert jetstream.are_acks(first).tolist() == [True]
    assert jetstream.are_acks(rest).tolist() == [True, False, False]


@pytest.mark.parametrize("said", [b"", b"{}", b"[]", b"1", b'{"seq":0}', b'{"seq":"1"}', b'{"error":1}', b"[" * 99_999])
def test_what_is_neither_an_ack_nor_a_refusal_says_so(said: bytes) -> None:
    with pytest.raises(BadFrame):
        jetstream.why_not(said)


@pytest.mark.parametrize("subject", [b"_ACK.x.1", b"_ACK.x.00000000000x", b"next"])
def test_an_answer_without_a_number_says_so(subject: bytes) -> None:
    [found] = Reader().take(b"MSG %b 1 2\r\n{}\r\n" % subject)
    assert isinstance(found, Messages)
    for read_number in (lambda: jetstream.numbers_of(found), lambda: jetstream.number_of(subject)):
        with pytest.raises(BadFrame):
            read_number()


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[int, int, bytes]:
    often, place, here, when, left = (draw(st.sampled_from([1, 9, 10, 99]) | st.integers(0, 10**6)) for _ in range(5))
    middle = draw(st.sampled_from([b"s.g", b"domain.account.s.g", b"s.h"]))
    end = draw(st.sampled_from([b"", b".token"]))
    return often, place, b"$JS.ACK.%b.%d.%d.%d.%d.%d%b" % (middle, often, place, here, when, left, end)


@given(st.lists(deliveries(), min_size=1, max_size=20))
def test_deliveries_in_bulk_are_what_they_are_one_by_one(sent: list[tuple[int, int, bytes]]) -> None:
    width = max(len(reply) for _, _, reply in sent)
    alike = [one for one in sent if len(one[2]) == width]
    replies = np.frombuffer(b"".join(reply for _, _, reply in alike), np.uint8).reshape(-1, width)
    counts, places = jetstream.delivered(replies)
    assert list(zip(counts.tolist(), places.tolist(), strict=True)) == [(often, place) for often, place, _ in alike]


@pytest.mark.parametrize("bad", [b"$JS.ACK.s.g.1.22.3.4.x", b"$JS.ACK.s.g.1122.3.4.5", b"$JS.NAK.s.g.1.22.3.4.5"])
def test_a_delivery_that_cannot_be_acknowledged_says_so(bad: bytes) -> None:
    for good in (b"", b"$JS.ACK.s.g.1.22.3.4.5"):
        with pytest.raises(BadFrame, match="acknowledges nothing"):
            jetstream.delivered(np.frombuffer(good + bad, np.uint8).reshape(-1, len(bad)))


def test_acknowledgements_are_published_one_by_one() -> None:
    replies = np.frombuffer(b"one.1two.2", np.uint8).reshape(2, 5)
    assert jetstream.acknowledgements(replies, b"+ACK").tobytes() == b"PUB one.1 4\r\n+ACK\r\nPUB two.2 4\r\n+ACK\r\n"


def test_json_that_is_no_object_says_so() -> None:
    assert jetstream.read_json(json.dumps({"a": 1}).encode()) == {"a": 1}
    with pytest.raises(BadFrame):
        jetstream.read_json(b"[]")

"""The codec of AMQP: what is written can be read, and any bytes in any split are read alike or are no AMQP."""

import struct
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ackworth.driver.codec.amqp import (
    FRAME_MAX,
    HEARTBEAT,
    Arguments,
    BadFrame,
    Command,
    Method,
    command,
    frame,
    parse,
    publish,
    short_string,
    table,
)
from ackworth.driver.codec.amqp_receiving import Census, Deliveries
from ackworth.driver.codec.amqp_sending import Confirms, Publishes, Unconfirmed, confirms
from tests.driver.pieces import damage, outcome_or, split

TOPICS = ["a", "topic-1", "topic-22"]


def delivery(index: int, tag: int, again: bool, key: str, body: bytes, *, name: str | None = None) -> bytes:
    """As the broker sends it: of what `publish` makes, only the method differs."""
    who = short_string(f"{index:05d}" if name is None else name)
    arguments = who + struct.pack(">Q?", tag, again) + short_string("x") + short_string(key)
    sent = publish("", "", tag, body)
    return command(Method.BASIC_DELIVER, arguments) + sent[len(command(Method.BASIC_PUBLISH, bytes(5))) :]


def confirm(method: Method, tag: int, multiple: bool) -> bytes:
    return command(method, struct.pack(">Q?", tag, multiple))


methods = st.builds(
    command, st.sampled_from([m for m in Method if m not in (Method.BASIC_DELIVER, Method.BASIC_RETURN)]), st.binary()
)
bodies = st.binary(max_size=30)
deliveries = st.builds(
    delivery, st.integers(0, 99999), st.integers(0, 1 << 62), st.booleans(), st.sampled_from(TOPICS), bodies
)
acks = st.builds(
    confirm, st.sampled_from([Method.BASIC_ACK, Method.BASIC_NACK]), st.integers(0, 1 << 62), st.booleans()
)
commands = methods | deliveries | acks | st.just(HEARTBEAT)
pieces = st.sampled_from([b"\1", b"\2", b"\3", b"\x08", b"\0", b"\0\1", b"\0\0\0", b"\xce", b"\x0d", b"A"])
frames = st.builds(frame, st.sampled_from([1, 2, 3, 8]), st.sampled_from([0, 1]), st.binary(max_size=30))
nearly = st.lists(pieces | frames | commands | st.binary(max_size=3), max_size=12).map(b"".join)
cuts = st.lists(st.integers(0, 600), max_size=6)


def piecemeal(data: bytes, cuts: list[int]) -> list[Command]:
    """The commands as they come when the bytes come in pieces."""
    found, buffer = [], b""
    for part in split(data, cuts):
        buffer += part
        while (one := parse(buffer, 0)) is not None:
            found.append(one[0])
            buffer = buffer[one[1] :]
    return found


outcome = partial(outcome_or, BadFrame)


damaged = st.builds(
    damage, st.lists(commands, min_size=1, max_size=8).map(b"".join), st.integers(0, 600), st.integers(0, 255)
)


# ---- commands ----------------------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=40)), cuts)
def test_what_is_written_is_read(written: list[bytes], cuts: list[int]) -> None:
    data = b"".join(command(Method.QUEUE_DECLARE_OK, arguments) for arguments in written)
    assert piecemeal(data, cuts) == [Command(Method.QUEUE_DECLARE_OK, arguments) for arguments in written]


@given(nearly | damaged, cuts)
@example(b"\1\0\1\0\0\0\1", [3])
def test_any_split_of_any_bytes_reads_alike_or_not_at_all(data: bytes, cuts: list[int]) -> None:
    assert outcome(lambda: piecemeal(data, cuts)) == outcome(lambda: piecemeal(data, []))


HEAD = command(Method.BASIC_DELIVER, b"")


@pytest.mark.parametrize(
    "data",
    [
        b"AMQP\0\0\x09\x01",  # it speaks another version
        struct.pack(">BHI", 1, 1, FRAME_MAX),
        command(Method.BASIC_ACK, b"x")[:-1] + b"\0",
        frame(1, 1, b"\0\0\0"),
        frame(2, 1, bytes(20)),
        frame(3, 1, b"body"),
        HEAD + frame(3, 1, b"body"),
        HEAD + frame(2, 0, bytes(20)),
        HEAD + frame(2, 1, bytes(11)),
        HEAD + frame(2, 1, struct.pack(">HHQ", 60, 0, 1 << 40)),
        HEAD + frame(2, 1, struct.pack(">HHQ", 60, 0, 3)) + frame(3, 1, b"body"),
        HEAD + frame(2, 1, struct.pack(">HHQ", 60, 0, 3)) + frame(3, 1, b""),
        HEAD + frame(2, 1, struct.pack(">HHQ", 60, 0, 4)) + frame(3, 2, b"body"),
    ],
)
def test_what_is_no_amqp_says_so(data: bytes) -> None:
    with pytest.raises(BadFrame):
        parse(data, 0)


def test_a_method_that_says_less_than_it_must() -> None:
    with pytest.raises(BadFrame, match="says less than it must"):
        Arguments(b"\5four").short_string()


def test_a_table_is_read_as_it_is_written() -> None:
    fields = {"product": "RabbitMQ", "number": -5, "capabilities": {"basic.nack": True, "other": False}}
    arguments = Arguments(table(fields) + b"\7")
    assert (arguments.table(), arguments.number(1)) == (fields, 7)
    with pytest.raises(BadFrame, match="a field of kind b'D'"):
        Arguments(b"\0\0\0\4\1aD\0").table()


# ---- sending -----------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 2), st.binary(max_size=120)), min_size=1),
    st.integers(0, 1 << 62),
    st.sampled_from([40, FRAME_MAX]),
)
def test_a_batch_is_its_messages_one_by_one(messages: list[tuple[int, bytes]], first: int, frame_max: int) -> None:
    sizes = np.array([len(body) for _, body in messages])
    width = max(1, int(sizes.max()))
    rows = np.frombuffer(b"".join(body.ljust(width, b"\0") for _, body in messages), np.uint8).reshape(-1, width)
    encoded = Publishes("x", TOPICS, frame_max).encode(first, np.array([topic for topic, _ in messages]), rows, sizes)
    one_by_one = [publish("x", TOPICS[t], first + i, body, frame_max) for i, (t, body) in enumerate(messages)]
    assert encoded.tobytes() == b"".join(one_by_one)


@given(st.lists(acks | nearly, max_size=20).map(b"".join), st.integers(0, 30))
def test_confirms_read_in_bulk_are_the_confirms_that_are_there(data: bytes, at: int) -> None:
    at = min(at, len(data))
    found = confirms(data, at)
    for tag, multiple in zip(found.tags.tolist(), found.multiple.tolist(), strict=True):
        one = parse(data, at)
        assert one is not None
        assert one[0].method == (Method.BASIC_ACK if found.acked else Method.BASIC_NACK)
        assert struct.unpack(">qB", one[0].arguments)[0] == tag
        assert bool(one[0].arguments[8] & 1) == multiple
        at = one[1]


def test_usual_confirms_are_all_read_in_bulk() -> None:
    data = b"".join(confirm(Method.BASIC_ACK, tag, tag % 3 == 0) for tag in range(1, 1001))
    assert len(confirms(data + b"\1\0\1", 0)) == 1000


@given(st.lists(st.tuples(st.integers(1, 40), st.booleans(), st.booleans()), max_size=30))
def test_each_message_is_settled_once_and_as_its_first_confirm_says(said: list[tuple[int, bool, bool]]) -> None:
    """Against a plain dictionary of what is open."""
    unconfirmed, plain = Unconfirmed(), dict(enumerate(range(100, 140), 1))
    for first in range(100, 140, 20):
        unconfirmed.add(first, 20)
    for tag, multiple, together in said:
        tags = [tag, tag // 2 + 1] if together else [tag]
        found = unconfirmed.settle(Confirms(True, np.array(tags), np.full(len(tags), multiple)))
        meant = {t for t in plain if t in tags or (multiple and t <= max(tags))}
        assert found.tolist() == [plain.pop(t) for t in sorted(meant)]


def test_what_came_back_is_not_confirmed_as_well() -> None:
    unconfirmed = Unconfirmed()
    unconfirmed.add(50, 3)
    assert unconfirmed.give_back(51).tolist() == [51]
    assert unconfirmed.settle(Confirms(True, np.array([3]), np.array([True]))).tolist() == [50, 52]
    with pytest.raises(BadFrame, match="came back that was not sent"):
        unconfirmed.give_back(51)


@pytest.mark.parametrize("tag", [0, 4, -1])
def test_a_confirm_of_what_was_not_sent(tag: int) -> None:
    unconfirmed = Unconfirmed()
    unconfirmed.add(50, 3)
    with pytest.raises(BadFrame, match="was not sent"):
        unconfirmed.settle(Confirms(True, np.array([tag]), np.array([True])))


# ---- receiving ---------------------------------------------------------------------------------------------


def received(data: bytes, cuts: list[int]) -> object:
    """What comes out, message by message, and what is left."""
    found, buffer = Deliveries(), b""
    for part in split(data, cuts):
        buffer += part
        buffer = buffer[found.feed(buffer) :]
    columns = [
        row
        for b in found.take(1 << 30)
        for row in zip(b.topics.tolist(), b.tags.tolist(), b.redelivered.tolist(), b.bodies, strict=True)
    ]
    return [(*row[:3], row[3].tobytes()) for row in columns], found.others, buffer


alike = st.tuples(
    st.integers(0, 99999), st.integers(0, 1 << 62), st.booleans(), st.sampled_from(["ab", "cd"]), st.just(b"body")
)
rows = st.lists(alike | alike.map(lambda row: (*row[:3], "other", b"another")), max_size=12)


@given(rows, cuts)
def test_deliveries_are_the_messages_one_by_one(
    messages: list[tuple[int, int, bool, str, bytes]], cuts: list[int]
) -> None:
    data = b"".join(delivery(*message) for message in messages)
    assert received(data, cuts) == ([(*m[:3], m[4]) for m in messages], [], b"")


@given(nearly | damaged, cuts)
def test_any_bytes_as_deliveries(data: bytes, cuts: list[int]) -> None:
    assert outcome(lambda: received(data, cuts)) == outcome(lambda: received(data, []))


def test_usual_deliveries_are_read_as_rows_across_topics() -> None:
    data = b"".join(delivery(i % 3, i, False, f"topic-{i % 3}", b"x" * 128) for i in range(1000))
    found = Deliveries()
    assert found.feed(data) == len(data)
    assert [len(block) for block in found.take(600)] == [1, 599]
    assert [block.tags.tolist() for block in found.take(600)] == [list(range(600, 1000))]


def test_other_commands_stand_beside_the_messages() -> None:
    found = Deliveries()
    found.feed(delivery(0, 1, False, "a", b"one") + HEARTBEAT + delivery(0, 2, False, "a", b"two"))
    assert found.others == [Command(Method.HEARTBEAT)] and len(found) == 2


@pytest.mark.parametrize("name", ["", "1", "1234x", "123456"])
def test_a_delivery_to_nobody(name: str) -> None:
    with pytest.raises(BadFrame, match="a delivery to nobody"):
        Deliveries().feed(delivery(0, 1, False, "a", b"body", name=name))


def test_a_body_of_several_frames_is_one_message() -> None:
    body = bytes(range(256)) * 1000
    assert received(delivery(7, 1, True, "a", body), []) == ([(7, 1, True, body)], [], b"")
    assert len(body) > FRAME_MAX


# ---- whether there is anything -----------------------------------------------------------------------------


def count(messages: int, consumers: int) -> Command:
    return Command(Method.QUEUE_DECLARE_OK, short_string("queue") + struct.pack(">II", messages, consumers))


def asked(queues: int = 2) -> Census:
    census = Census(queues, 0.0)
    assert not census.due(0.2) and census.due(0.3) and not census.due(0.4)
    return census


def test_empty_is_what_all_have_said() -> None:
    census = asked()
    assert census.take(count(0, 1), 0.5) and not census.empty
    assert census.take(count(0, 2), 0.5) and census.empty
    assert not census.take(count(0, 2), 0.5)  # nobody asked


@pytest.mark.parametrize(("messages", "consumers"), [(1, 1), (0, 0)])
def test_one_that_has_messages_or_was_not_counted_is_not_empty(messages: int, consumers: int) -> None:
    census = asked()
    census.take(count(messages, consumers), 0.5)
    census.take(count(0, 1), 0.5)
    assert not census.empty


def test_a_message_meanwhile_spoils_it() -> None:
    census = asked()
    census.take(count(0, 1), 0.5)
    census.spoil(0.5)
    census.take(count(0, 1), 0.5)
    assert not census.empty


def test_an_answer_that_stays_out_means_that_nothing_is_known() -> None:
    census = asked(1)
    census.take(count(0, 1), 0.5)
    assert census.due(1.0) and census.empty
    assert not census.due(2.0) and census.empty
    assert not census.due(3.1) and not census.empty

"""A body says who it is, and every byte of it is checked."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ackworth.driver.matrix import as_matrix
from ackworth.load.body import HEADER, Bodies

RUN = 0xA0B1C2D3E4F50617


def built(count: int, sizes: list[int]) -> list[bytes]:
    matrix = Bodies(RUN).build(7, np.arange(count) % 3, 1000, np.array(sizes), 55)
    return [matrix[i, : sizes[i]].tobytes() for i in range(count)]


@given(st.lists(st.integers(HEADER, 300), min_size=1, max_size=20))
def test_what_is_built_is_read_back(sizes: list[int]) -> None:
    count = len(sizes)
    checked = Bodies(RUN).check(*as_matrix(built(count, sizes)))
    assert checked.intact.all() and not checked.foreign.any()
    assert checked.seq.tolist() == list(range(1000, 1000 + count))
    assert checked.topic.tolist() == [i % 3 for i in range(count)]
    assert set(checked.producer.tolist()) == {7} and set(checked.t_sent.tolist()) == {55}


@pytest.mark.parametrize("size", [HEADER, 64, 77])
def test_any_flipped_bit_is_seen(size: int) -> None:
    (body,) = built(1, [size])
    flipped = [body[:at] + bytes([body[at] ^ (1 << bit)]) + body[at + 1 :] for at in range(size) for bit in range(8)]
    assert not Bodies(RUN).check(*as_matrix(flipped)).intact.any()


@settings(max_examples=200)
@given(st.data())
def test_any_other_damage_is_seen(data: st.DataObject) -> None:
    (body,) = built(1, [128])
    damaged = bytearray(body)
    for _ in range(data.draw(st.integers(2, 8))):
        damaged[data.draw(st.integers(0, 127))] = data.draw(st.integers(0, 255))
    cut = bytes(damaged[: data.draw(st.sampled_from([128, 128, 127, 48, 8, 0]))])
    assert bool(Bodies(RUN).check(*as_matrix([cut])).intact[0]) == (cut == body)


def test_a_body_of_another_run_is_foreign() -> None:
    checked = Bodies(RUN + 1).check(*as_matrix(built(1, [64])))
    assert checked.intact.all() and checked.foreign.all()


def test_bodies_differ_from_message_to_message() -> None:
    fills = {body[HEADER:] for body in built(100, [64] * 100)}
    assert len(fills) == 100


def test_what_is_not_ours_has_no_identity() -> None:
    checked = Bodies(RUN).check(*as_matrix([b"", b"hello", b"x" * 200]))
    assert checked.producer.tolist() == checked.seq.tolist() == [-1, -1, -1]
    assert not checked.intact.any()

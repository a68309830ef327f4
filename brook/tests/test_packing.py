"""Packed, cut and unpacked, messages are what they were."""

import json

from hypothesis import given
from hypothesis import strategies as st

from brook.claiming import Range, share_out, take
from brook.packing import RUN_BYTES, Extra, Piece, Run, cut, largest_body, pack

BODIES = st.lists(st.binary(max_size=5) | st.just(b"x" * (RUN_BYTES // 3)), min_size=1, max_size=20)
KEYS = st.none() | st.text(max_size=2)


def stored(run: Run, first: int) -> Piece:
    extras = run.extras and json.loads(run.extras)
    return Piece(run.topic, first, run.messages, 1, 0, bytes(run.data), run.sizes, extras or None)


@given(bodies=BODIES, data=st.data())
def test_any_part_of_any_run(bodies: list[bytes], data: st.DataObject) -> None:
    keys = data.draw(st.lists(KEYS, min_size=len(bodies), max_size=len(bodies)))
    extras: list[Extra | None] = [None if key is None else (key, (), {}) for key in keys]
    first, found = 7, list[tuple[bytes, str | None]]()
    begin = data.draw(st.integers(7, 6 + len(bodies)))
    end = data.draw(st.integers(begin + 1, 7 + len(bodies)))
    for run in pack(1, bodies, extras):
        assert largest_body(run) <= RUN_BYTES
        if first < end and first + run.messages > begin:
            piece = cut(stored(run, first), begin, end)
            assert len(piece.bodies) == piece.messages
            found += zip(piece.bodies, [e and e[0] for e in piece.extras or [None] * piece.messages], strict=True)
        first += run.messages
    assert first == 7 + len(bodies)
    assert found == list(zip(bodies, keys, strict=True))[begin - 7 : end - 7]


RANGES = st.lists(st.integers(1, 100), max_size=40).map(
    lambda counts: [Range(topic, 5, count) for topic, count in enumerate(counts, 1)]
)


@given(ready=RANGES, limit=st.integers(0, 200), after=st.integers(0, 41))
def test_shares(ready: list[Range], limit: int, after: int) -> None:
    shares = list(share_out(ready, limit, after))
    assert sum(share.messages for share in shares) <= limit
    assert bool(shares) == bool(ready and limit)
    given_out = {share.topic: share for share in shares}
    assert len(given_out) == len(shares)
    assert all(share.first == 5 and 0 < share.messages <= ready[share.topic - 1].messages for share in shares)
    if shares:
        assert shares[0].topic == min((r.topic for r in ready if r.topic > after), default=ready[0].topic)


@given(ready=RANGES, limit=st.integers(0, 200))
def test_take(ready: list[Range], limit: int) -> None:
    taken = list(take(((9, each) for each in ready), limit))
    assert sum(part.messages for _, part, _ in taken) == min(limit, sum(each.messages for each in ready))
    for (receipt, part, rest), each in zip(taken, ready, strict=False):
        assert (receipt, part.messages + rest.messages, rest.first) == (9, each.messages, each.first + part.messages)
    assert all(rest.messages == 0 for _, _, rest in taken[:-1])

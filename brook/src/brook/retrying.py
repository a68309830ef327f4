"""When a refused message comes again, and whom it holds up. Plain arithmetic, the same for all stores."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from brook.claiming import Range, Setback
from brook.packing import Piece
from brook.stores.base import Waiting

MINUTE = 60.0
# Seconds before each retry; a message that fails after the last of them is dead.
LADDER = (10.0, 20.0, 30.0, *(n * MINUTE for n in range(1, 11)), 20 * MINUTE, 30 * MINUTE, 60 * MINUTE)

BEHIND = "waits for an earlier message of its key"


def due_after(attempts: int, ladder: Sequence[float], now: float) -> float | None:
    """When to try again after so many attempts; None: never."""
    return now + ladder[attempts - 1] if attempts <= len(ladder) else None


def refused(
    pieces: Sequence[Piece],
    chosen: Collection[tuple[int, int]] | None,
    *,
    cause: str,
    ladder: Sequence[float],
    now: float,
    ordered: bool,
) -> list[Setback]:
    """Of all messages, or of those chosen, (topic, offset) each."""
    return [
        Setback(each, due_after(each.attempts, ladder, now), cause, key)
        for piece in pieces
        for each, key in _ranges(piece, chosen, ordered)
    ]


def behind(pieces: Sequence[Piece], waiting: Mapping[tuple[int, str], Waiting]) -> list[Setback]:
    """Messages that must not be handled before an earlier one of their key; this was no attempt."""
    return [
        Setback(Range(piece.topic, offset, 1, piece.attempts - 1), first.due, BEHIND, key)
        for piece in pieces
        for offset, key in enumerate(piece.keys, piece.first)
        if key is not None and (first := waiting.get((piece.topic, key))) and first.offset < offset
    ]


def _ranges(
    piece: Piece, chosen: Collection[tuple[int, int]] | None, ordered: bool
) -> Iterator[tuple[Range, str | None]]:
    """Without an order to keep, a whole piece is as good as its messages one by one."""
    if chosen is None and not ordered:
        yield Range(piece.topic, piece.first, piece.messages, piece.attempts), None
        return
    for offset, key in enumerate(piece.keys, piece.first):
        if chosen is None or (piece.topic, offset) in chosen:
            yield Range(piece.topic, offset, 1, piece.attempts), key if ordered else None

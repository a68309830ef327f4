"""Keys and tags: which runs hold them. Every function runs in a transaction.

Rows of runs that are gone may stay for a while, until their block has no runs; nobody finds them.
"""

from collections.abc import Collection

from brook.claiming import Range
from brook.packing import Piece, labels
from brook.sql import statements as sql
from brook.stores.places import to_piece, to_place, topic_bounds
from brook.stores.session import Session

# So many characters of a label are kept: what begins alike is found too, and told apart by who looks.
LONGEST = 255


def add(db: Session, placed: Collection[tuple[int, str | None]]) -> None:
    """Of new runs: their places, and the extras of their messages."""
    rows = {(place >> sql.BLOCK_BITS, label[:LONGEST], place) for place, extras in placed for label in labels(extras)}
    db.change(sql.ADD_LABEL, *sorted(rows))  # in their order, so that a page is looked for once


def find(db: Session, label: str, wanted: Range, runs: int) -> list[Piece]:
    """The first so many runs that hold the label, of those that hold some of a range."""
    first, end = to_place(wanted.topic, wanted.first), to_place(wanted.topic, wanted.end)
    ((begin,),) = db.rows(sql.RUN_AT, {"place": first, "first": to_place(wanted.topic, 0)})
    these = {"label": label[:LONGEST], "place": first, "count": wanted.messages}
    pieces: list[Piece] = []
    for block in range(begin >> sql.BLOCK_BITS, (end - 1 >> sql.BLOCK_BITS) + 1):
        found = db.rows(sql.LABELLED_RUNS, {**these, "block": block, "runs": runs - len(pieces)})
        pieces += map(to_piece, found)
        if len(pieces) == runs:
            break
    return pieces


def drop(db: Session, topic: int, last: int) -> None:
    """Of the topic's blocks up to that of a place, as far as they have no runs any more."""
    first, _ = topic_bounds(topic)
    bounds = (first >> sql.BLOCK_BITS, last >> sql.BLOCK_BITS)
    labelled = {block for (block,) in db.rows(sql.LABELLED_BLOCKS, bounds)}
    places = [{"block": b, "first": b << sql.BLOCK_BITS, "end": (b + 1) << sql.BLOCK_BITS} for b in labelled]
    filled = {block for (block,) in db.rows_of_each(sql.FILLED_BLOCK, places)}
    db.change(sql.DROP_LABELS, *[(block,) for block in labelled - filled])

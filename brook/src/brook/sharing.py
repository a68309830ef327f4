"""Threads of one client that claim or ack for a group at the same time share a transaction.

What a claim costs is its transaction, whatever its size, and so it is with an ack. Whoever gets the turn (see
`group_commit`) does it for all that wait: what they are done with is acked, and each that wants a batch gets one of its
own. Nothing is claimed for a thread that does not wait for it.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from brook.errors import BrookError, Forbidden
from brook.group_commit import Turns, Waiter
from brook.model import Claimed
from brook.packing import Piece
from brook.stores.base import ClaimRequest, Store


class Outcome(NamedTuple):
    held: int = 0  # messages of the claim that is over
    claimed: Claimed | None = None
    pieces: Sequence[Piece] = ()


class _Wish(Waiter[Outcome]):
    """To end a claim, to have another, or both."""

    __slots__ = ("done", "request")

    def __init__(self, done: int | None, request: ClaimRequest | None) -> None:
        super().__init__()
        self.done, self.request = done, request


class Sharing(Turns[Outcome]):
    """Of one group."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        super().__init__()
        self._store = store
        self._clock = clock

    def ack(self, receipt: int) -> int:
        """How many messages it still held."""
        return self._settle(_Wish(receipt, None)).held

    def claim(self, request: ClaimRequest, done: int | None = None) -> Outcome:
        """Time and thread of the request are filled in here.

        done: the receipt of a claim that is over. Forbidden: neither was done.
        """
        return self._settle(_Wish(done, request))

    def _settle_all(self, waiting: Sequence[Waiter[Outcome]]) -> None:
        for alike in _alike([wish for wish in waiting if isinstance(wish, _Wish)]):
            self._settle_together(alike)

    def _settle_together(self, wishes: Sequence[_Wish]) -> None:
        try:
            held, claimed = self._ack_and_claim(wishes)
        except Forbidden as error:
            # Nothing was done; those who claim nothing must not suffer.
            if len(wishes) == 1:
                wishes[0].error = error
            else:
                for wish in wishes:
                    self._settle_together([wish])
            return
        with unless_handed_out(self._store, claimed):
            pieces = self._store.read([each.receipt for each in claimed]) if claimed else []
        counts, granted = iter(held), zip(claimed, pieces, strict=True)
        for wish in wishes:
            count = 0 if wish.done is None else next(counts)
            wish.result = Outcome(count, *next(granted, ()) if wish.request else ())

    def _ack_and_claim(self, wishes: Sequence[_Wish]) -> tuple[list[int], list[Claimed]]:
        done = [wish.done for wish in wishes if wish.done is not None]
        asking = [wish for wish in wishes if wish.request]
        if not asking or asking[0].request is None:
            return self._store.ack(done, self._clock()), []
        request = asking[0].request._replace(now=self._clock(), threads=tuple(wish.thread for wish in asking))
        return self._store.ack_and_claim(done, request)


@contextlib.contextmanager
def unless_handed_out(store: Store, claimed: Iterable[Claimed]) -> Iterator[None]:
    """What was claimed, and for an error reaches nobody, is for others at once; or when the lease is over."""
    try:
        yield
    except BaseException:
        for each in claimed:
            with contextlib.suppress(BrookError):
                store.renew(each.receipt, 0.0)
        raise


def _alike(wishes: Sequence[_Wish]) -> list[list[_Wish]]:
    """Those who want the same together; who only acks goes with the first of them."""
    asking: dict[ClaimRequest, list[_Wish]] = {}
    for wish in wishes:
        if wish.request:
            asking.setdefault(wish.request, []).append(wish)
    acking = [wish for wish in wishes if not wish.request]
    first, *others = asking.values() or [[]]
    return [acking + first, *others]

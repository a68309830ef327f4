"""Claims and acks of a client's threads in one transaction: each gets what is its own, and hears of its own loss."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from brook import Alert, Brook, Forbidden, Message, UnknownGroup
from brook.model import Claimed
from brook.sharing import Outcome, Sharing
from brook.stores.base import ClaimRequest
from brook.stores.sqlite import SqliteStore
from brook.testing import tools
from brook.testing.tools import NOW, OTHER


class Gated(SqliteStore):
    """Notes who acks and claims together; `gate` holds up the first until others have queued up."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, durability="off")
        self.turns: list[tuple[int, tuple[str, ...]]] = []  # how many were acked, and who claimed
        self.entered, self.gate = threading.Event(), threading.Event()

    def ack_and_claim(self, receipts: Sequence[int], request: ClaimRequest) -> tuple[list[int], list[Claimed]]:
        if len(request.threads) == 1 and request.threads[0] == "first":
            self.entered.set()
            assert self.gate.wait(60)
        self.turns.append((len(receipts), request.threads))
        return super().ack_and_claim(receipts, request)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Gated]:
    with contextlib.closing(Gated(tmp_path / "q.db")) as store:
        (topic,) = tools.create(store, "t")
        store.append(tools.run(topic, 20), NOW)
        tools.subscribe_all(store)
        yield store


def together(store: Gated, jobs: dict[str, Callable[[Sharing], Any]], now: float = NOW) -> dict[str, Any]:
    """What each job returned or raised; they all wait while another claims."""
    sharing, results = Sharing(store, lambda: now), dict[str, Any]()

    def run(job: Callable[[Sharing], Any]) -> None:
        try:
            results[threading.current_thread().name] = job(sharing)
        except Exception as error:
            results[threading.current_thread().name] = type(error)

    threads = [threading.Thread(target=run, args=(job,), name=name) for name, job in {"first": claim, **jobs}.items()]
    threads[0].start()
    assert store.entered.wait(60)
    for thread in threads[1:]:
        thread.start()
    while len(sharing._queue) < len(jobs):
        threading.Event().wait(0.001)
    store.gate.set()
    for thread in threads:
        thread.join(60)
    return results


def claim(sharing: Sharing, done: int | None = None, topics: frozenset[int] | None = None) -> Outcome:
    return sharing.claim(tools.request(limit=3, topics=topics), done)


def test_those_who_wait_share_a_transaction(store: Gated) -> None:
    done, _ = tools.receive(store, limit=2)
    store.turns.clear()
    results = together(store, {"a": claim, "b": lambda sharing: claim(sharing, done), "c": claim})
    assert [(acked, sorted(threads)) for acked, threads in store.turns] == [(0, ["first"]), (1, ["a", "b", "c"])]
    offsets = [offset for result in results.values() for offset in tools.offsets(result.pieces)[1]]
    assert sorted(offsets) == list(range(2, 14)), "each has messages of its own"
    assert results["b"].held == 2
    for name, result in results.items():
        (delivery,) = store.trace(1, result.pieces[0].first).deliveries
        assert delivery.thread == name


def test_a_loss_is_told_to_whom_it_befell(store: Gated) -> None:
    (lost, _), (kept, _) = tools.receive(store, limit=2), tools.receive(store, limit=3)
    store.renew(lost, 0.0)
    tools.receive(store, client=OTHER, limit=2)
    jobs = {"lost": lambda sharing: sharing.ack(lost), "kept": lambda sharing: claim(sharing, kept).held}
    results = together(store, jobs)
    assert (results["lost"], results["kept"]) == (0, 3)
    assert store.turns[-1] == (2, ("kept",)), "not one transaction"


def test_who_acks_does_not_suffer_from_a_claim_that_is_forbidden(store: Gated) -> None:
    (closed,) = tools.create(store, "closed")
    store.set_rule(closed, "closed")
    (one, _), (two, _) = tools.receive(store, limit=2), tools.receive(store, limit=3)
    results = together(
        store,
        {
            "acks": lambda sharing: sharing.ack(one),
            "both": lambda sharing: claim(sharing, two, frozenset({closed})),
        },
    )
    assert (results["acks"], results["both"]) == (2, Forbidden)
    assert tools.ack(store, two) == 3, "its ack was not done either: it is told so"


def test_an_error_reaches_all_who_wait(store: Gated) -> None:
    def ask(sharing: Sharing) -> Outcome:
        return sharing.claim(tools.request("nobody"))

    results = together(store, {"a": ask, "b": ask})
    assert (results["a"], results["b"]) == (UnknownGroup, UnknownGroup)


def test_for_who_is_interrupted_nothing_is_claimed(store: Gated) -> None:
    class Interrupted(Sharing):
        def _took_turn(self, mine: Any) -> bool:
            assert list(self._queue) == [mine]
            raise KeyboardInterrupt

    sharing = Interrupted(store, lambda: NOW)
    with pytest.raises(KeyboardInterrupt):
        claim(sharing)
    assert not sharing._queue


def test_handlers_ack_with_their_next_claim(url: str) -> None:
    handled, transactions = list[int](), list[int]()
    with Brook(url, durability="off") as mq:

        @mq.consumer("t", group="g", threads=0, batch=3)
        def note(messages: list[Message]) -> None:
            handled.extend(message.offset for message in messages)

        mq.append(["t"] * 9, [b"x"] * 9)
        acked = mq._store.ack_and_claim

        def counted(receipts: Sequence[int], request: ClaimRequest) -> tuple[list[int], list[Claimed]]:
            transactions.append(len(receipts))
            return acked(receipts, request)

        mq._store.ack_and_claim = counted  # type: ignore[method-assign]
        assert note.work()
        assert not note.work()
        assert (handled, transactions) == (list(range(9)), [0, 1, 1, 1, 0])
        assert mq.lag("g") == 0


def test_a_handler_that_is_told_to_stop_acks_what_it_has_and_claims_nothing(url: str) -> None:
    with Brook(url, durability="off") as mq:

        @mq.consumer("t", group="g", threads=0, batch=3)
        def note(messages: list[Message]) -> None:
            note.tell_to_stop()

        mq.append(["t"] * 9, [b"x"] * 9)
        assert note.work()
        assert mq.lag("g") == 6
        assert len(mq.receive("g").offsets) == 6


def test_a_batch_that_was_lost_is_an_alert_and_the_next_goes_on(url: str, clock: Any) -> None:
    alerts, handled = list[Alert](), list[int]()
    with Brook(url, clock=clock) as other, Brook(url, clock=clock, on_alert=alerts.append) as mq:

        @mq.consumer("t", group="g", threads=0, batch=2)
        def note(messages: list[Message]) -> None:
            handled.extend(message.offset for message in messages)
            if messages[0].offset == 0:
                clock.now += 61
                assert other.receive("g", max_messages=1).offsets == [0]

        mq.append(["t"] * 4, [b"x"] * 4)
        assert note.work()
    assert handled == [0, 1, 2, 3]
    assert [alert.kind for alert in alerts] == ["slow", "lost"]


def test_an_ack_is_done_though_the_next_claim_is_forbidden(url: str) -> None:
    with Brook(url, durability="off") as mq:

        @mq.consumer("t", group="g", threads=0, batch=2)
        def note(messages: list[Message]) -> None:
            mq.set_rule("t", "closed")

        mq.append(["t"] * 4, [b"x"] * 4)
        with pytest.raises(Forbidden):
            note.work()
        assert mq.lag("g") == 2

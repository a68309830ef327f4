"""Sends of many threads in one commit; an error reaches all whose messages were in it."""

import contextlib
import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from brook import (
    BadMessage,
    BodyTooLarge,
    Brook,
    DatabaseFull,
    DatabaseLocked,
    Forbidden,
    Refused,
    StoreFailed,
    UnknownTopic,
)
from brook.group_commit import GroupCommit
from brook.packing import Run, unpack


class Table:
    """Takes the place of a store; `gate` holds up the first commit until others have queued up."""

    def __init__(self) -> None:
        self.commits: list[list[Run]] = []
        self.stored: list[bytes] = []
        self.entered = threading.Event()
        self.gate = threading.Event()
        self.error: BaseException | None = None

    def append(self, runs: list[Run]) -> list[int]:
        self.entered.set()
        assert self.gate.wait(60)
        if self.error and self.commits:
            raise self.error
        self.commits.append(runs)
        firsts = []
        for run in runs:
            firsts.append(len(self.stored))
            self.stored += unpack(bytes(run.data), run.messages, run.sizes)
        return firsts


def gathered(table: Table, jobs: list[Callable[[GroupCommit], None]], commit: GroupCommit | None = None) -> GroupCommit:
    """Run the first job, and the others while it is committing."""
    commit = commit or GroupCommit(table.append)
    threads = [threading.Thread(target=job, args=(commit,), daemon=True) for job in jobs]
    threads[0].start()
    assert table.entered.wait(60)
    for thread in threads[1:]:
        thread.start()
    while len(commit._queue) < len(jobs) - 1:
        threading.Event().wait(0.001)
    table.gate.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return commit


def test_what_gathers_goes_in_one_commit() -> None:
    table, offsets = Table(), dict[bytes, int]()

    def send(body: bytes) -> Callable[[GroupCommit], None]:
        return lambda commit: offsets.__setitem__(body, commit.one(1, body, None))

    runs: list[int] = []
    jobs = [send(b"%d" % n * n) for n in range(1, 20)]
    gathered(table, [*jobs, lambda commit: runs.extend(commit.runs([Run(2, 1, b"a"), Run(3, 1, b"b")]))])
    assert [sum(run.messages for run in commit) for commit in table.commits] == [1, 20]
    assert {offset: body for body, offset in offsets.items()} | dict(zip(runs, [b"a", b"b"], strict=True)) == dict(
        enumerate(table.stored)
    )


@pytest.mark.parametrize(
    ("error", "seen"), [(DatabaseFull("no room"), DatabaseFull), (KeyboardInterrupt(), StoreFailed)]
)
def test_an_error_reaches_all_and_the_next_go_on(error: BaseException, seen: type[Exception]) -> None:
    table, raised = Table(), []
    table.error = error

    def send(commit: GroupCommit) -> None:
        try:
            commit.one(1, b"x", None)
        except BaseException as caught:
            raised.append(type(caught))

    commit = gathered(table, [send] * 5)
    assert sorted(kind.__name__ for kind in raised) == sorted([type(error).__name__, *[seen.__name__] * 3])
    table.error = None
    assert commit.one(1, b"y", None) == 1


def test_what_cannot_be_packed_leaves_nobody_waiting() -> None:
    table, ended = Table(), []

    def send(body: bytes) -> Callable[[GroupCommit], None]:
        def job(commit: GroupCommit) -> None:
            try:
                commit.one(1, body, None)
            except (TypeError, StoreFailed) as error:
                ended.append(type(error))

        return job

    not_bytes: Any = "text"
    commit = gathered(table, [send(b"first"), send(b"a"), send(not_bytes), send(b"b")])
    assert sorted(kind.__name__ for kind in ended) == ["StoreFailed", "StoreFailed", "TypeError"]
    assert table.stored == [b"first"]
    assert commit.one(1, b"next", None) == 1


def test_whose_message_is_stored_is_not_told_of_anothers_failure() -> None:
    """After a refusal all are tried one by one, by one of them; here the database fails when that one's is stored."""
    table, outcomes = Table(), dict[str, object]()

    def append(runs: list[Run]) -> list[int]:
        if len(runs) > 1:
            raise Forbidden("one of them")
        if len(table.commits) == 2:
            raise DatabaseLocked("busy")
        return table.append(runs)

    def send(topic: int) -> Callable[[GroupCommit], None]:
        def job(commit: GroupCommit) -> None:
            try:
                outcomes[threading.current_thread().name] = commit.one(topic, b"%d" % topic, None)
            except Exception as error:
                outcomes[threading.current_thread().name] = type(error)

        return job

    commit = GroupCommit(append)
    gathered(table, [send(topic) for topic in range(4)], commit)
    told = list(outcomes.values())
    assert sorted(each for each in told if isinstance(each, int)) == list(range(len(table.stored)))
    assert told.count(DatabaseLocked) == 4 - len(table.stored) == 2


@pytest.mark.parametrize("kind", [Forbidden, BodyTooLarge, BadMessage, UnknownTopic])
def test_what_one_is_refused_for_others_do_not_suffer(kind: type[Refused]) -> None:
    table, refused = Table(), list[type[Refused]]()

    def append(runs: list[Run]) -> list[int]:
        if any(run.topic == 13 for run in runs):
            raise kind("13")
        return table.append(runs)

    def send(commit: GroupCommit) -> None:
        commit.one(1, b"x", None)

    def fail(commit: GroupCommit) -> None:
        try:
            commit.one(13, b"x", None)
        except Refused as error:
            refused.append(type(error))

    gathered(table, [send, fail, send, fail, send], GroupCommit(append))
    assert (len(table.stored), refused) == (3, [kind, kind])


class Interrupting(dict[int, object]):
    """A turn, at the taking of which one is interrupted once it is taken."""

    interrupts = 1

    def setdefault(self, process: int, holder: object = None) -> object:
        found = super().setdefault(process, holder)
        if self.interrupts:
            self.interrupts -= 1
            raise KeyboardInterrupt
        return found


@pytest.mark.parametrize(
    "send", [lambda commit: commit.one(1, b"x", None), lambda commit: commit.runs([Run(1, 1, b"x")])]
)
def test_an_interrupt_loses_no_turn(send: Callable[[GroupCommit], object]) -> None:
    table = Table()
    table.gate.set()
    commit = GroupCommit(table.append)
    commit._turn = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        send(commit)
    later = threading.Thread(target=send, args=(commit,), daemon=True)
    later.start()
    later.join(30)
    assert not later.is_alive()


def test_an_interrupt_before_the_commit_leaves_the_others_in_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    table, interrupted = Table(), list[str]()
    do_all = GroupCommit._do_all

    def interrupt_one(commit: GroupCommit, waiting: Any) -> None:
        if not interrupted:
            interrupted.append(threading.current_thread().name)
            raise KeyboardInterrupt
        do_all(commit, waiting)

    monkeypatch.setattr(GroupCommit, "_do_all", interrupt_one)

    def send(commit: GroupCommit) -> None:
        with contextlib.suppress(KeyboardInterrupt):
            commit.one(1, b"x", None)

    gathered(table, [send] * 5)
    assert len(interrupted) == 1


def test_a_send_that_was_interrupted_is_not_done_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who caught the interrupt has looked, found nothing, and sends it again."""
    table = Table()
    table.gate.set()
    commit = GroupCommit(table.append)

    def interrupt(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(GroupCommit, "_took_turn", interrupt)
        commit.runs([Run(1, 1, b"x")])
    commit.one(1, b"x", None)
    assert table.stored == [b"x"]


def test_threads_together(tmp_path: Path) -> None:
    with Brook(f"sqlite:///{tmp_path}/q.db") as mq:
        sent: dict[bytes, int] = {}

        def send(thread: int) -> None:
            for n in range(50):
                body = b"%d/%d" % (thread, n)
                sent[body] = mq.send("t", body, key="k" if n % 2 else None).offset

        threads = [threading.Thread(target=send, args=(n,)) for n in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        mq.subscribe("g")
        got = mq.receive("g", max_messages=2000)
        assert dict(zip(got.offsets, got.bodies, strict=True)) == {offset: body for body, offset in sent.items()}
        assert len(got.pieces) < 1000  # messages that were committed together are stored together
        assert all((m.key == "k") == (int(m.body.split(b"/")[1]) % 2 == 1) for m in got.messages)


def test_nothing_is_lost_between_two_turns() -> None:
    numbers, offsets = itertools.count(), list[int]()

    def append(runs: list[Run]) -> list[int]:
        return [min([next(numbers) for _ in range(run.messages)]) for run in runs]

    def send() -> None:
        for _ in range(200):
            offsets.append(commit.one(1, b"x", None))

    commit = GroupCommit(append)
    threads = [threading.Thread(target=send) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(offsets) == 4000 == next(numbers)

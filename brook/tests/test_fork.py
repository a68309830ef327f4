"""Forks: a queue is not carried over one, and what is opened anew on the other side is whole."""

import fcntl
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from brook import Brook, Closed, Run


def forked(life: Callable[[], None]) -> int:
    """A process that does this and ends at once: nothing of ours is closed, or tested on, in it."""
    child = os.fork()
    if child:
        return child
    try:
        signal.alarm(120)
        life()
        os._exit(0)
    finally:
        os._exit(1)


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_process_is_told(url: str) -> None:
    """Also if at that moment another thread, which is not there any more, was sending for all."""
    entered, leave, parent = threading.Event(), threading.Event(), os.getpid()
    with Brook(url) as mq:
        mq.create_topics(["t"])
        commit = mq._sender._commit
        append = commit._append

        def held(runs: list[Run]) -> list[int]:
            if os.getpid() == parent:
                entered.set()
                assert leave.wait(60)
            return append(runs)

        def send() -> None:
            with pytest.raises(Closed):
                mq.send("t", b"x")

        commit._append = held
        sending = threading.Thread(target=mq.send, args=("t", b"x"))
        sending.start()
        assert entered.wait(60)
        child = forked(send)
        leave.set()
        sending.join()
        assert ended(child) == 0
        assert mq.send("t", b"x").offset == 1


@pytest.fixture
def file(tmp_path: Path) -> str:
    """On MariaDB no process knows of another's connections."""
    return f"sqlite:///{tmp_path}/q.db"


def test_what_a_forked_process_commits_stays(file: str) -> None:
    """Though its parent, which had the file open before, closes it meanwhile."""
    mq = Brook(file)
    mq.send("t", b"before")
    (closed, close), (opened, open_) = os.pipe(), os.pipe()

    def live() -> None:
        own = Brook(file)
        os.write(open_, b".")
        assert os.read(closed, 1)
        own.send("t", b"after")

    child = forked(live)
    assert os.read(opened, 1)
    mq.close()
    os.write(close, b".")
    assert ended(child) == 0
    with Brook(file) as look:
        assert [message.body for message in look.tail("t")] == [b"before", b"after"]


def test_a_fork_waits_for_what_is_being_committed(file: str) -> None:
    """Otherwise the other process would believe for ever that somebody of its own has the write lock."""
    began, leave = threading.Event(), threading.Event()
    with Brook(file) as mq:
        mq.create_topics(["t"])

        def work(_: object) -> None:
            began.set()
            leave.wait(0.1)  # the fork waits for us: this cannot be waited for

        committing = threading.Thread(target=mq._store._database.write, args=(work,))  # type: ignore[attr-defined]
        committing.start()
        assert began.wait(60)
        assert ended(forked(lambda: send_anew(file))) == 0
        committing.join()
        assert mq.send("t", b"x").offset == 1


def send_anew(url: str) -> None:
    with Brook(url, patience=60.0) as own:
        own.send("t", b"x")


def test_who_is_killed_before_the_door_leaves_it_open(file: str) -> None:
    """Though a process lives on that was forked from it."""
    with Brook(file, patience=1.0) as mq:
        waiting, wait = os.pipe()

        def linger() -> None:
            os.close(wait)
            os.read(waiting, 1)

        def die() -> None:
            own = Brook(file)
            forked(linger)
            fcntl.flock(own._store._database._door, fcntl.LOCK_EX)  # type: ignore[attr-defined]
            os.kill(os.getpid(), signal.SIGKILL)

        assert ended(forked(die)) == -signal.SIGKILL
        assert mq.send("t", b"x").offset == 0
        os.close(wait)

"""Ctrl-C and SIGTERM wait for what must not be torn, and are not forgotten."""

import os
import signal
import threading

import pytest

from ackworth.model.interrupts import interrupts_wait


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_that_comes_meanwhile_is_seen_and_delivered_at_the_end(number: signal.Signals) -> None:
    heard: list[int] = []
    before = signal.signal(number, lambda which, frame: heard.append(which))
    try:
        with interrupts_wait() as came:
            os.kill(os.getpid(), number)
            assert len(came) == 1 and heard == []
        assert heard == [number]
    finally:
        signal.signal(number, before)


def test_an_error_in_there_is_the_error() -> None:
    with pytest.raises(LookupError), interrupts_wait():
        os.kill(os.getpid(), signal.SIGINT)
        raise LookupError


def test_another_thread_gets_none() -> None:
    def run() -> None:
        with interrupts_wait() as came:
            assert not came
        done.append(True)

    done: list[bool] = []
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert done

"""Dead is only who certainly is."""

import os
import subprocess
import sys

from brook.identity import is_dead, new_client_id

PRINT_ID = (
    "import sys; from brook.identity import new_client_id; print(new_client_id('x'), flush=True); sys.stdin.read()"
)


def test_this_process_lives() -> None:
    assert not is_dead(new_client_id())
    assert new_client_id("a/b").startswith("a-b/")
    assert new_client_id() != new_client_id()


def test_a_killed_process_is_dead_before_its_parent_looks() -> None:
    with subprocess.Popen([sys.executable, "-c", PRINT_ID], stdin=-1, stdout=-1, text=True) as child:
        assert child.stdout is not None
        client = child.stdout.readline().strip()
        assert not is_dead(client)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # a zombie now, not yet reaped
        assert is_dead(client)
    assert is_dead(client)


def test_a_later_process_with_the_same_pid_is_another() -> None:
    label, place, pid, started, unique = new_client_id().split("/")
    assert is_dead("/".join((label, place, pid, str(int(started) - 1), unique)))


def test_elsewhere_nobody_can_tell() -> None:
    label, _, pid, _, unique = new_client_id().split("/")
    assert not is_dead("/".join((label, "another boot", pid, "0", unique)))
    assert not is_dead("/".join((label, "", pid, "0", unique)))

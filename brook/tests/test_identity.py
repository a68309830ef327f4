"""Dead is only who certainly is."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from brook import identity
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


def test_who_is_hidden_from_us_is_not_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with /proc mounted hidepid=2: the processes of other users are not listed."""
    ended = subprocess.run([sys.executable, "-c", PRINT_ID], input="", stdout=-1, text=True, check=True).stdout.strip()
    living = new_client_id()
    for shown in ("sys", "self"):
        (tmp_path / shown).symlink_to(f"/proc/{shown}")
    monkeypatch.setattr(identity, "_PROC", tmp_path)
    assert (is_dead(living), is_dead(ended)) == (False, True)


def test_who_cannot_be_looked_up_is_not_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is one that could not look itself up, to those who can."""
    living = new_client_id()

    def no_more_files(*_: Any) -> str:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", no_more_files)
        assert not is_dead(living)
        nameless = new_client_id()
    assert not is_dead(nameless)

"""A session's directory goes with the session, or with the next one if the session was killed."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ackworth.pipeline.private import private_directory

OWNER = """
import subprocess, sys
from ackworth.pipeline.private import private_directory
with private_directory() as path:
    (path / "full").write_text("of something")
    child = subprocess.Popen(["cat"])  # as Spark is: it may live on for a moment, and holds no lock
    print(path, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


@contextmanager
def owner() -> Iterator[tuple["subprocess.Popen[str]", Path]]:
    """Another process that has a directory, and the directory."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())


def test_gone_at_the_end(temporary: Path) -> None:
    with private_directory() as path:
        assert path.parent == temporary
    assert list(temporary.iterdir()) == []


def test_the_next_removes_what_a_killed_one_left(temporary: Path) -> None:
    with owner() as (process, left):
        process.kill()
        process.wait()
        assert (left / "full").exists()
        with private_directory() as path:
            assert list(temporary.iterdir()) == [path]


def test_one_in_use_stays() -> None:
    with owner() as (_, other), private_directory(), private_directory() as path:
        assert (other / "full").exists()
        assert path.exists()
    assert not other.exists()


def test_what_is_no_directory_stays(temporary: Path) -> None:
    with private_directory() as path:
        prefix = path.name[:-8]
    (temporary / f"{prefix}file").touch()
    (temporary / "elsewhere").mkdir()
    (temporary / f"{prefix}link").symlink_to("elsewhere")
    before = sorted(temporary.iterdir())
    with private_directory() as path:
        assert sorted(temporary.iterdir()) == sorted([*before, path])


def test_another_users_stays(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with owner() as (process, left):
        process.kill()
        process.wait()
        me = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: me + 1)
        with private_directory():
            assert left.exists()


def test_one_that_was_removed_before_it_was_locked_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    make, made = tempfile.mkdtemp, []

    def removed_at_first(prefix: str) -> str:
        made.append(make(prefix=prefix))
        if len(made) == 1:
            Path(made[0]).rmdir()
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", removed_at_first)
    with private_directory() as path:
        assert path.exists() and str(path) == made[1]

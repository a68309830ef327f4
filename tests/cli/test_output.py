"""Where the output goes: closed, full, narrow or of another alphabet, it changes neither exit code nor sense."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from ackworth.cli.progress import Progress

COMMAND = [sys.executable, "-m", "ackworth.cli.main"]


@pytest.fixture
def nobody_reads() -> Iterator[int]:
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


def test_whoever_read_has_gone(nobody_reads: int) -> None:
    done = subprocess.run([*COMMAND, "plans"], stdout=nobody_reads, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (2, b"")


def test_nobody_reads_what_is_wrong_either(nobody_reads: int) -> None:
    done = subprocess.run([*COMMAND, "run", "rebot"], stdout=nobody_reads, stderr=nobody_reads, check=False)
    assert done.returncode == 2  # 1 would be a broken promise


@pytest.mark.parametrize(("arguments", "code"), [("plans >&-", 0), ("plans <&- >&- 2>&-", 0), ("run rebot 2>&-", 2)])
def test_streams_that_are_closed(arguments: str, code: int) -> None:
    done = subprocess.run(f"{sys.executable} -m ackworth.cli.main {arguments}", shell=True, stderr=-1, check=False)
    assert (done.returncode, done.stderr) == (code, b"")


def test_a_disk_that_is_full() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*COMMAND, "plans"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "ackworth: the output: No space left on device: see whether it is there, may be written, and has room on its "
        "disk\n"
    )


def test_another_alphabet() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*COMMAND, "brokers"], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--attach redis://?" in done.stdout


@pytest.mark.parametrize("arguments", [["--help"], ["plans"], ["run", "rebot"]])
def test_what_tells_little_loads_little(arguments: list[str]) -> None:
    """Spark, Arrow and numpy take most of a second to load."""
    code = f"import ackworth.cli.main as cli, sys\ntry: cli.main({arguments!r})\nexcept SystemExit: pass\n"
    code += "print(*{'numpy', 'pyarrow', 'pyspark'} & set(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    loaded = done.stderr.splitlines()[-1].split()
    assert "pyspark" not in loaded
    assert loaded == [] or arguments[0] == "run"


def test_a_line_that_moves_keeps_to_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    outside, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    os.set_blocking(outside, False)
    with os.fdopen(inside, "w") as terminal:
        monkeypatch.setattr("sys.stderr", terminal)
        progress = Progress(quiet=False)
        progress.begin("[1/1] trial")
        progress.counts("send", sent=1_000_000, answered=1_000_000, delivered=1_000_000)
        assert os.read(outside, 1000).decode() == "[1/1] trial: send, 0 s, sent 1,000,000,"
    os.close(outside)

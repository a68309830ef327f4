"""The user's own commands for faults: what they leave running is the user's."""

import os
import signal
from pathlib import Path

import pytest

from ackworth.fault import contract as faults
from ackworth.run import traces
from ackworth.run.attached import START, Attached, Attachment, CommandFailed


def run(command: str) -> None:
    attachment = Attachment(
        kind="redis-streams", url="redis://x", shown="redis://x", version="7", commands={START: command}
    )
    Attached(attachment, {}, ["topic"], ["group"], [])._run(START)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ackworth.run.attached.COMMAND_WITHIN", 5.0)


def test_a_server_that_it_leaves_running_is_not_waited_for_and_not_marked_as_the_runs(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(traces.VARIABLE, "00000000000000aa")
    run(f"sleep 60 & echo $! > {tmp_path}/pid")
    pid = int((tmp_path / "pid").read_text())
    try:
        assert traces.VARIABLE.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
    finally:
        os.kill(pid, signal.SIGKILL)


def test_one_that_fails_or_does_not_end_is_said_with_its_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandFailed, match="the command for 'start' ended with code 3: no such host"):
        run("echo trying; echo no such host >&2; exit 3")
    monkeypatch.setattr("ackworth.run.attached.COMMAND_WITHIN", 0.1)
    with pytest.raises(CommandFailed, match=r"did not end within 0.1 s: exec sleep 60"):
        run("exec sleep 60")


@pytest.mark.parametrize("start", ["echo >> {0}", "false; echo >> {0}; exit 3"])
def test_a_trial_that_ends_in_the_middle_of_a_fault_mends_what_it_broke_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    monkeypatch.setattr("ackworth.run.attached.BACK_WITHIN", 0)
    started, notes = tmp_path / "started", list[str]()
    commands = {"pause": "true", START: start.format(started)}
    attachment = Attachment(kind="redis-streams", url="redis://x", shown="redis://x", version="7", commands=commands)
    nowhere = {"host": "127.0.0.1", "port": 1}
    with pytest.raises(KeyboardInterrupt), Attached(attachment, nowhere, ["topic"], ["group"], notes) as stage:
        stage.strike(faults.find("pause"), [])
        raise KeyboardInterrupt
    assert started.read_text() == "\n"
    assert ("is left broken" in notes[0]) == ("exit 3" in start)


def test_what_was_mended_is_not_mended_again(tmp_path: Path) -> None:
    started, notes = tmp_path / "started", list[str]()
    commands = {"pause": "true", START: f"echo >> {started}"}
    attachment = Attachment(kind="redis-streams", url="redis://x", shown="redis://x", version="7", commands=commands)
    with Attached(attachment, {"host": "127.0.0.1", "port": 1}, ["topic"], ["group"], notes) as stage:
        stage.strike(faults.find("pause"), [])()
    assert started.read_text() == "\n"

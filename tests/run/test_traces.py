"""What a dead run left behind is removed; what is alive or not ours is left alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ackworth.broker.disk import Disk
from ackworth.broker.process import kill_and_wait, started
from ackworth.run import traces


def note(run: str, directory: Path, pid: int, started: int) -> None:
    folder = traces.notes_folder()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{run}.json").write_text(
        json.dumps({"run": run, "pid": pid, "started": started, "directory": str(directory)})
    )


def test_a_run_is_noted_while_it_lives(tmp_path: Path) -> None:
    with traces.noted("aa", tmp_path):
        assert os.environ[traces.VARIABLE] == "aa"
        assert traces.sweep() == []
        assert (traces.notes_folder() / "aa.json").exists()
    assert traces.VARIABLE not in os.environ
    assert not (traces.notes_folder() / "aa.json").exists()


def test_orphans_and_data_of_a_dead_run_are_removed(tmp_path: Path) -> None:
    (tmp_path / "trials" / "t" / "nodes" / "n").mkdir(parents=True)
    (tmp_path / "trials" / "t" / "trial.json").write_text("the record stays")
    environment = {**os.environ, traces.VARIABLE: "dead-run"}
    orphan = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env=environment)
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    note("dead-run", tmp_path, pid=orphan.pid, started=1)  # the pid lives, but is somebody else now
    (said,) = traces.sweep()
    assert "removed 1 process, " in said and "the broker's data" in said and str(tmp_path) in said
    assert orphan.wait() == -9
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()
    assert not (tmp_path / "trials" / "t" / "nodes").exists()
    assert (tmp_path / "trials" / "t" / "trial.json").exists()


def test_a_run_that_was_killed_and_not_yet_buried_is_dead(tmp_path: Path) -> None:
    (tmp_path / "trials" / "t" / "nodes").mkdir(parents=True)
    conductor = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    note("dead-run", tmp_path, conductor.pid, started(conductor.pid))
    assert traces.alive("dead-run") and traces.sweep() == []
    kill_and_wait([conductor.pid])
    assert started(conductor.pid), "it was buried"
    assert not traces.alive("dead-run")
    assert len(traces.sweep()) == 1
    conductor.wait()


@pytest.mark.real
def test_what_somebody_still_uses_is_removed_by_a_later_start(tmp_path: Path, own_mounts: None) -> None:
    node = tmp_path / "trials" / "t" / "nodes" / "n"
    disk = Disk(node / "disk.img", node / "disk", 16 << 20)
    note("dead-run", tmp_path, pid=1, started=0)
    with (disk.mount_point / "file").open("w"):
        assert traces.sweep() == []
        assert disk.mount_point.is_mount()
    (said,) = traces.sweep()
    assert f"the mount {disk.mount_point}" in said and "the broker's data" in said
    assert not node.exists() and traces.sweep() == []


def test_a_note_that_cannot_be_read_is_thrown_away() -> None:
    folder = traces.notes_folder()
    folder.mkdir(parents=True)
    for number, text in enumerate(("", "{", "[]", '{"run": 1}')):
        (folder / f"{number}.json").write_text(text)
    assert traces.sweep() == []
    assert list(folder.iterdir()) == []

"""The cut takes what was not synced, and only on a mount of its own."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ackworth.broker.disk import Disk
from ackworth.broker.process import holders
from ackworth.fault.kill import FAULT as KILL
from ackworth.fault.pause import FAULT as PAUSE
from ackworth.fault.power_cut import FAULT as POWER_CUT
from ackworth.fault.power_cut import open_own_mount
from ackworth.model.errors import Unavailable

pytestmark = pytest.mark.real

# Writes a synced file and one that is not, says so, and goes on writing a third until it is stopped; the disk is small.
WRITER = """
import os, sys
folder = sys.argv[1]
def write(name, sync):
    with open(f"{folder}/{name}", "wb") as file:
        file.write(b"x" * 100_000)
        file.flush()
        if sync:
            os.fsync(file.fileno())
write("synced", True)
folder_fd = os.open(folder, os.O_RDONLY); os.fsync(folder_fd)
write("not-synced", False)
endless = open(f"{folder}/endless", "wb")
print("ready", flush=True)
while True:
    endless.write(b"x" * 1000); endless.flush()
    if endless.tell() > 1_000_000:
        endless.seek(0); endless.truncate()
"""


@dataclass
class Writer:
    """A node: whoever has files open below the folder."""

    folder: Path
    name: str = "writer"
    program: str = WRITER

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", self.program, str(self.folder)], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def processes(self) -> list[int]:
        return holders(self.folder)

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@pytest.fixture
def disk(tmp_path: Path, own_mounts: None) -> Iterator[Disk]:
    one = Disk(tmp_path / "disk.img", tmp_path / "disk", 64 << 20)
    yield one
    one.remove()
    assert not one.image.exists()


@pytest.fixture
def writer(disk: Disk) -> Iterator[Writer]:
    node = Writer(disk.mount_point)
    node.start()
    yield node
    node.stop()


def test_what_was_not_synced_is_gone(disk: Disk, writer: Writer) -> None:
    mend = POWER_CUT.strike(writer, disk)
    assert writer.processes() == []
    assert list(disk.mount_point.iterdir()) == []  # unmounted
    mend()
    assert (disk.mount_point / "synced").read_bytes() == b"x" * 100_000
    left = disk.mount_point / "not-synced"
    assert not left.exists() or left.stat().st_size == 0


@dataclass
class Leaver(Writer):
    """Gives up its files after it was listed, and before it is stopped: it is listed once."""

    listed: int = 0

    def processes(self) -> list[int]:
        self.listed += 1
        return [self._process.pid] if self.listed == 1 else []


def test_one_that_gave_up_its_files_just_before_does_not_stand_still_for_ever(disk: Disk) -> None:
    leaver = Leaver(disk.mount_point)
    leaver.start()
    try:
        POWER_CUT.strike(leaver, disk)
        assert leaver.ended
    finally:
        leaver.stop()


# Has a file open, and does not notice that its disk is gone.
HOLDER = """
import signal, sys
held = open(f"{sys.argv[1]}/held", "wb")
print("ready", flush=True)
signal.pause()
"""


@dataclass
class LateComer(Writer):
    """Opens its files after the last one was stopped, and before the disk is gone: then it is not listed yet."""

    program: str = HOLDER
    listed: int = 0

    def processes(self) -> list[int]:
        self.listed += 1
        return [] if self.listed == 1 else super().processes()


def test_one_that_opened_its_files_just_before_does_not_hold_the_disk(disk: Disk) -> None:
    late = LateComer(disk.mount_point)
    late.start()
    try:
        mend = POWER_CUT.strike(late, disk)
        assert late.ended
        mend()
    finally:
        late.stop()


def test_kill_alone_loses_nothing_of_it(disk: Disk, writer: Writer) -> None:
    KILL.strike(writer, disk)
    assert writer.processes() == []
    assert (disk.mount_point / "not-synced").read_bytes() == b"x" * 100_000


def test_a_pause_stands_still_and_goes_on(disk: Disk, writer: Writer) -> None:
    mend = PAUSE.strike(writer, disk)
    endless = disk.mount_point / "endless"
    size = endless.stat().st_size
    assert endless.stat().st_size == size
    mend()
    while endless.stat().st_size == size:
        pass


def test_a_path_that_is_no_mount_of_its_own_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="would take down the whole machine"):
        open_own_mount(tmp_path)


def test_a_disk_that_came_unmounted_is_refused(disk: Disk) -> None:
    disk.unmount()
    with pytest.raises(Unavailable, match="is no mount of its own"):
        POWER_CUT.strike(Writer(disk.mount_point), disk)


def test_a_node_without_a_disk_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="has no disk of its own"):
        POWER_CUT.strike(Writer(tmp_path), None)


def test_without_root_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert "needs root" in str(POWER_CUT.why_not())

"""Where filesystems are mounted, whatever their names."""

import subprocess
from pathlib import Path

import pytest

from ackworth.model.files import mounts


@pytest.mark.real
def test_a_mount_point_may_have_any_name(tmp_path: Path, own_mounts: None) -> None:
    point = tmp_path / "a b\tc\\d"
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "nosuid", "none", str(point)], check=True)
    try:
        (found,) = [mount for mount in mounts() if mount.point == str(point)]
        assert found.kind == "tmpfs" and "nosuid" in found.options
    finally:
        subprocess.run(["umount", str(point)], check=True)

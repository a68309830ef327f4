"""A disk of its own for a node: an ext4 image mounted through a loop device, so that its power can be cut.

The mount lives in the private mount namespace of the run (see `privately`): when the last process of
the run dies, however it dies, the kernel unmounts it and frees the loop device.
"""

import ctypes
import errno
import os
import subprocess
import time
from pathlib import Path

from ackworth.model.errors import Unavailable

BLOCK = 4096
_CLONE_NEWNS = 0x00020000
_MS_REC, _MS_PRIVATE = 0x4000, 1 << 18


def why_not() -> str | None:
    """Why this machine cannot have such a disk; None if it can."""
    if os.geteuid() != 0:
        return "it needs root: run as root, or see what a kill does with --set faults.0.kind=kill"
    if not Path("/dev/loop-control").exists():
        return "there is no loop device (/dev/loop-control): load the kernel module 'loop'"
    missing = [tool for tool in ("mkfs.ext4", "mount", "umount", "losetup") if _which(tool) is None]
    return f"{', '.join(missing)} is not installed: install e2fsprogs and mount" if missing else None


def privately() -> None:
    """Give this process, and what it starts from now on, mounts of its own. Must come before any thread."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS):
        raise Unavailable(f"no mounts of one's own here ({os.strerror(ctypes.get_errno())}): run as root")
    # In a chroot "/" is no mount point, and cannot be made private: then the mounts may be seen outside,
    # and outlive a killed run until the next start sweeps them.
    if libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None) and ctypes.get_errno() != errno.EINVAL:
        raise Unavailable(f"no private mounts here ({os.strerror(ctypes.get_errno())}): run as root")


class Disk:
    """An image and its mount point."""

    def __init__(self, image: Path, mount_point: Path, size: int) -> None:
        self.image, self.mount_point = image, mount_point
        image.parent.mkdir(parents=True, exist_ok=True)
        mount_point.mkdir(parents=True, exist_ok=True)
        with image.open("wb") as file:
            file.truncate(size)
        _run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard", str(image))
        self.mount()

    def mount(self) -> None:
        # The kernel's late initialisation would write while the broker is measured.
        _run("mount", "-o", "loop,noinit_itable", str(self.image), str(self.mount_point))

    def unmount(self, seconds: float = 10) -> None:
        """Never lazily: an image that is still alive must not be mounted again beside itself."""
        deadline = time.monotonic() + seconds
        while os.path.ismount(self.mount_point):
            done = _tool("umount", str(self.mount_point))
            if done.returncode and time.monotonic() > deadline:
                raise Unavailable(f"{self.mount_point} cannot be unmounted: {done.stderr.strip()}")
            if done.returncode:
                time.sleep(0.005)
        while self._attached():
            if time.monotonic() > deadline:
                raise Unavailable(f"{self.image} stays attached to a loop device: see `losetup -a`")
            time.sleep(0.005)

    def _attached(self) -> bool:
        return bool(_run("losetup", "-j", str(self.image)).strip())

    def sync(self) -> None:
        descriptor = os.open(self.mount_point, os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).syncfs(descriptor):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(self.mount_point))
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        self.unmount()
        self.image.unlink(missing_ok=True)


def _tool(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """In a session of its own: Ctrl-C reaches the whole terminal, and is not to cut short what cleans up."""
    command = [_path(name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, start_new_session=True)


def _run(tool: str, *arguments: str) -> str:
    done = _tool(tool, *arguments)
    if done.returncode:
        raise Unavailable(f"{tool} {' '.join(arguments)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def _path(tool: str) -> str:
    found = _which(tool)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, "not installed", tool)
    return found


def _which(tool: str) -> str | None:
    """Also where a user's PATH does not look."""
    folders = [*os.environ.get("PATH", "").split(":"), "/usr/sbin", "/sbin", "/usr/bin", "/bin"]
    return next((f"{folder}/{tool}" for folder in folders if os.access(f"{folder}/{tool}", os.X_OK)), None)

"""Memory in workers: kept from chunk to chunk."""

import contextlib
import ctypes

# Parameters of glibc's mallopt.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


def keep_memory() -> None:
    """Let the allocator keep what is freed.

    A chunk's arrays are of the size that glibc hands back to the kernel at once, which then zeroes the same
    pages again for the next chunk: that took a quarter of a task's time. Elsewhere there is nothing to set.
    """
    with contextlib.suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, 1 << 25)
        mallopt(_TRIM_THRESHOLD, 1 << 28)

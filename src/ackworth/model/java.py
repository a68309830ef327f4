"""Java, which Spark and some brokers run on: found, checked, and started faster from an archive of classes."""

import hashlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ackworth.model.errors import Unavailable

_LEAST = 17
_REMEDY = f"install a Java {_LEAST} runtime or later (Debian: apt-get install default-jre-headless), or set JAVA_HOME"


@dataclass(frozen=True)
class Java:
    path: str
    said: str  # all that it says of itself

    @property
    def name(self) -> str:
        return self.said.partition("\n")[0]

    @property
    def version(self) -> int | None:
        """17 of '17.0.15', 8 of '1.8.0_252'."""
        found = re.search(r'version "(?:1\.)?(\d+)', self.said)
        return int(found[1]) if found else None


def look() -> Java | None:
    """The Java of JAVA_HOME, or else the first in the PATH, however old."""
    home = os.environ.get("JAVA_HOME")
    path = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    return None if path is None else Java(path, _said(path))


@cache
def _said(path: str) -> str:
    return subprocess.run([path, "-version"], capture_output=True, text=True, check=False).stderr


def why_not(java: Java | None) -> str | None:
    """Why it will not do, and what to do about it; None if it will."""
    if java is None:
        home = os.environ.get("JAVA_HOME")
        return f"there is no Java{f' in {home}' if home else ''}: {_REMEDY}"
    if java.version is None or java.version < _LEAST:
        return f"{java.path} is Java {java.version or 'of no known version'}: {_REMEDY}"
    return None


def find() -> Java:
    """A Java that is new enough. Raises Unavailable."""
    java = look()
    if (reason := why_not(java)) or java is None:
        raise Unavailable(str(reason))
    return java


class Archive:
    """The classes that one program loads on one Java, mapped instead of loaded and checked at every start.

    It is written beside by a JVM that ends, and renamed. A JVM that finds it unfit goes on without it.
    """

    def __init__(self, directory: Path, java: Java, program: str, version: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        which = hashlib.sha256(f"{java}{version}".encode()).hexdigest()[:16]
        self.path = directory / f"{program}-{which}.jsa"
        self._beside = directory / f".{program}-{which}.{os.getpid()}"

    @property
    def option(self) -> str:
        return (
            f"-XX:SharedArchiveFile={self.path}" if self.path.exists() else f"-XX:ArchiveClassesAtExit={self._beside}"
        )

    def keep(self) -> None:
        """After the JVM's end: keep what it wrote, if it did."""
        if self._beside.exists():
            self._beside.replace(self.path)

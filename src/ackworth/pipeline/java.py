"""Java, which Spark runs on: found and checked, and an archive of the classes that Spark loads."""

import hashlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pyspark

from ackworth.model.errors import Unavailable

_LEAST = 17
_REMEDY = f"install a Java {_LEAST} runtime or later (Debian: apt-get install default-jre-headless), or set JAVA_HOME"


@dataclass(frozen=True)
class Java:
    path: str
    version: str  # all that it says of itself


def find_java() -> Java:
    """The Java that Spark will run on. Raises Unavailable."""
    home = os.environ.get("JAVA_HOME")
    path = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if path is None:
        raise Unavailable(f"Spark needs Java, and there is none{f' in {home}' if home else ''}: {_REMEDY}")
    said = subprocess.run([path, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version is None or int(version[1]) < _LEAST:
        raise Unavailable(f"{path} is Java {version[1] if version else 'of no known version'}: {_REMEDY}")
    return Java(path, said)


class Archive:
    """The classes of one Java and one Spark, mapped instead of loaded and checked at every start.

    It is written beside by a JVM that ends, and renamed. A JVM that finds it unfit goes on without it.
    """

    def __init__(self, directory: Path, java: Java) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        which = hashlib.sha256(f"{java}{pyspark.__version__}{pyspark.__file__}".encode()).hexdigest()[:16]
        self._path = directory / f"spark-{which}.jsa"
        self._beside = directory / f".spark-{which}.{os.getpid()}"

    @property
    def option(self) -> str:
        return (
            f"-XX:SharedArchiveFile={self._path}" if self._path.exists() else f"-XX:ArchiveClassesAtExit={self._beside}"
        )

    def keep(self) -> None:
        """After the JVM's end: keep what it wrote, if it did."""
        if self._beside.exists():
            self._beside.replace(self._path)

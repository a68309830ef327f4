"""Jars from Maven Central: Maven brings them, with all that they need, into the user's cache."""

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ackworth.broker import debian
from ackworth.model.errors import Unavailable
from ackworth.model.files import cache

_POM = """<project>
<modelVersion>4.0.0</modelVersion><groupId>ackworth</groupId><artifactId>jars</artifactId><version>1</version>
<dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"


@dataclass(frozen=True)
class Jars:
    """Artifacts as 'group:artifact:version', and whatever they need to run."""

    name: str
    artifacts: tuple[str, ...]

    @property
    def folder(self) -> Path:
        return cache() / self.name

    @property
    def class_path(self) -> str:
        return f"{self.folder}/*"

    def there(self) -> bool:
        return self.folder.is_dir()

    def fetch(self) -> str:
        """Bring them, and say what was done. Raises Unavailable."""
        if shutil.which("mvn") is None:
            debian.install(package="maven")
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.folder.parent) as work:
            (Path(work) / "pom.xml").write_text(self.pom())
            _run_maven(Path(work), self.name)
            shutil.rmtree(self.folder, ignore_errors=True)
            (Path(work) / "jars").rename(self.folder)  # whole, or not there
        return f"fetched {self.name} from Maven Central"

    def pom(self) -> str:
        dependencies = (_DEPENDENCY.format(*artifact.split(":")) for artifact in self.artifacts)
        return _POM.format(dependencies="".join(dependencies))


def _run_maven(folder: Path, name: str) -> None:
    command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=jars"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        errors = [line.removeprefix("[ERROR] ") for line in done.stdout.splitlines() if line.startswith("[ERROR]")]
        raise Unavailable(f"Maven could not fetch {name}: {errors[0] if errors else done.returncode}")

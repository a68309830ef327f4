"""The one place that starts Spark or reaches it.

A local session is tuned for what judging asks of the JVM, which is little: it hands tasks to Python
workers and moves small partial results. A session of our own starts quietly, keeps its files in a
directory of its own, and takes the directory away at its end.
"""

import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

import ackworth
from ackworth.model.errors import AckworthError, Unavailable
from ackworth.pipeline.progress import watched
from ackworth.pipeline.source import run_on_spark
from ackworth.pipeline.work import Job, Result

LOCAL = "local[*]"
_JAVA = 17

_SETTINGS = {
    "spark.app.name": "ackworth",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.catalogImplementation": "in-memory",
}
_LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
}
# The JVM does little here: it need not be compiled well, nor collected by many threads.
_LOCAL_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"

# What may be set in any session, also in one that is not ours.
_RUNTIME_SETTINGS = {
    # A job has a few hundred to a few thousand keys: do not sort them.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
}

_LOG4J = "rootLogger.level = error\nrootLogger.appenderRef.stderr.ref = console\n\
appender.console.type = Console\nappender.console.name = console\nappender.console.target = SYSTEM_ERR\n\
appender.console.layout.type = PatternLayout\nappender.console.layout.pattern = %p %c{1}: %m%n\n"


@dataclass(frozen=True)
class Session:
    """Spark as an engine for judging."""

    spark: SparkSession
    master: str
    parallel: int

    def run(self, job: Job, progress: Callable[[int, int], None]) -> list[Result]:
        try:
            with watched(self.spark, progress):
                return run_on_spark(self.spark, job)
        except (PySparkException, Py4JError) as error:
            raise AckworthError(f"{self.master}: Spark failed while judging ({_first_line(error)})") from error

    def about(self) -> dict[str, Any]:
        return {"spark": self.spark.version, "master": self.master}


@contextmanager
def session(master: str = LOCAL) -> Iterator[Session]:
    """A session on a master (`local[*]`, `spark://host:port`, ...) or a Spark Connect server (`sc://host:port`)."""
    private = Path(tempfile.mkdtemp(prefix="ackworth-spark-"))
    try:
        with _connected(master, private) if master.startswith("sc://") else _started(master, private) as found:
            for key, value in _RUNTIME_SETTINGS.items():
                found.spark.conf.set(key, value)
            yield found
    finally:
        shutil.rmtree(private, ignore_errors=True)


@contextmanager
def _connected(url: str, private: Path) -> Iterator[Session]:
    try:
        spark = SparkSession.builder.remote(url).create()
        spark.addArtifact(str(_package(private)), pyfile=True)
    except (PySparkException, ImportError, OSError) as error:
        raise Unavailable(f"{url}: no Spark Connect server answers ({_first_line(error)}): check the address") from error
    try:
        yield Session(spark, url, 4)
    finally:
        spark.stop()


@contextmanager
def _started(master: str, private: Path) -> Iterator[Session]:
    _require_java()
    with warnings.catch_warnings():
        # PySpark loads its own test tools and, where there is a newer pandas than it knows, warns of it.
        warnings.simplefilter("ignore", FutureWarning)
        importlib.import_module("pyspark.testing.utils")
    conf = SparkConf(loadDefaults=False).setMaster(master).setAll(_settings(master, private).items())
    log = private / "spark.log"
    with _python_of_workers(master), log.open("wb") as output:
        try:
            gateway = launch_gateway(conf, {"stdout": output, "stderr": output})
            context = SparkContext(conf=conf, gateway=gateway)
        except Exception as error:
            raise Unavailable(f"{master}: Spark did not start ({_last_line(log) or _first_line(error)})") from error
    try:
        if not _is_local(master):
            context.addPyFile(str(_package(private)))
        yield Session(SparkSession(context), master, context.defaultParallelism)
    finally:
        context.stop()
        _end(gateway)


def _settings(master: str, private: Path) -> dict[str, str]:
    (private / "log4j2.properties").write_text(_LOG4J)
    settings = _SETTINGS | {
        "spark.local.dir": str(private),
        "spark.sql.warehouse.dir": str(private / "warehouse"),
    }
    java = f"-Dlog4j2.configurationFile={private}/log4j2.properties -Djava.io.tmpdir={private}"
    if _is_local(master):
        settings |= _LOCAL_SETTINGS
        java = f"{_LOCAL_JAVA} {java}"
    return settings | {"spark.driver.extraJavaOptions": java}


def _is_local(master: str) -> bool:
    return master.startswith("local")


@contextmanager
def _python_of_workers(master: str) -> Iterator[None]:
    """Workers on this machine run the Python that runs us; elsewhere, what the user says."""
    before = os.environ.get("PYSPARK_PYTHON")
    if before is None and (_is_local(master) or "//127.0.0.1:" in master or "//localhost:" in master):
        os.environ["PYSPARK_PYTHON"] = sys.executable
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("PYSPARK_PYTHON", None)


def _package(private: Path) -> Path:
    """Ackworth as a zip for workers elsewhere, which then need only numpy and pyarrow."""
    path = private / "ackworth.zip"
    root = Path(ackworth.__file__).parent
    with zipfile.ZipFile(path, "w") as package:
        for part in ("__init__.py", "model", "history", "pipeline"):
            sources = [root / part] if part.endswith(".py") else sorted((root / part).rglob("*.py"))
            for source in sources:
                package.write(source, source.relative_to(root.parent))
    return path


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    remedy = f"install a Java {_JAVA} runtime or later (Debian: apt-get install default-jre-headless), or set JAVA_HOME"
    if java is None:
        raise Unavailable(f"Spark needs Java, and there is none{f' in {home}' if home else ''}: {remedy}")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version is None or int(version[1]) < _JAVA:
        raise Unavailable(f"{java} is Java {version[1] if version else 'of an unknown version'}: {remedy}")


def _end(gateway: Any) -> None:
    """The JVM goes when its input is closed; forget it, so that another session can start one."""
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    SparkContext._gateway = None
    SparkContext._jvm = None


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _last_line(log: Path) -> str:
    return log.read_text(errors="replace").strip().rpartition("\n")[2]


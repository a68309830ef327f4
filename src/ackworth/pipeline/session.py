"""The one place that starts Spark or reaches it.

A local session is tuned for what judging asks of the JVM, which is little: it hands tasks to Python
workers and moves small partial results. A session of our own starts quietly and keeps its files in a
directory of its own.
"""

import importlib
import os
import socket
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyspark
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import ackworth
from ackworth.model import java
from ackworth.model.errors import AckworthError, Unavailable
from ackworth.pipeline.on_spark import run_on_spark
from ackworth.pipeline.private import private_directory
from ackworth.pipeline.progress import watched
from ackworth.pipeline.virtual_machine import reason_in, virtual_machine
from ackworth.pipeline.work import Job, Result

LOCAL = "local[*]"

_SETTINGS = {
    "spark.app.name": "ackworth",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.catalogImplementation": "in-memory",
}
# The JVM does little here: compiling well, collecting by many threads and planning anew cost more than they give.
_LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_LOCAL_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"

_CONNECT_PORT = 15002
# How many tasks a Connect server runs at a time is not said; large records are cut into more tasks anyway.
_PARALLEL_ELSEWHERE = 4

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
            raise AckworthError(f"{self.master}: Spark failed while judging ({reason_in(str(error))})") from error

    def about(self) -> dict[str, Any]:
        return {"spark": self.spark.version, "master": self.master}


@contextmanager
def session(master: str = LOCAL, archives: Path | None = None) -> Iterator[Session]:
    """A session on a master (`local[*]`, `spark://host:port`, ...) or a Spark Connect server (`sc://host:port`).

    In `archives` a local session keeps the classes that it loaded: making the archive takes some seconds at the
    end of the first session, and saves as many at the start of every later one.
    """
    _load_quietly("pyspark.testing.utils")
    with (
        private_directory() as private,
        _connected(master, private) if master.startswith("sc://") else _started(master, private, archives) as found,
    ):
        for key, value in _RUNTIME_SETTINGS.items():
            found.spark.conf.set(key, value)
        yield found


def _load_quietly(module: str) -> None:
    """Some of PySpark's modules look for pandas, and warn if it is newer than they know: not our user's concern."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        importlib.import_module(module)


@contextmanager
def _connected(url: str, private: Path) -> Iterator[Session]:
    try:
        _reach(url)
        _load_quietly("pyspark.sql.connect.utils")
        spark = SparkSession.builder.remote(url).create()
        spark.addArtifact(str(_package(private)), pyfile=True)
    except ImportError as error:
        raise Unavailable(
            f"{url}: PySpark's client lacks something ({reason_in(str(error))}): pip install 'ackworth[connect]'"
        ) from error
    except (PySparkException, OSError) as error:
        raise Unavailable(
            f"{url}: no Spark Connect server answers ({reason_in(str(error))}): check the address"
        ) from error
    try:
        yield Session(spark, url, _PARALLEL_ELSEWHERE)
    finally:
        spark.stop()


def _reach(url: str) -> None:
    """Spark's own client tries for minutes where nobody listens. Raises OSError."""
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port or _CONNECT_PORT), timeout=10):
        pass


@contextmanager
def _started(master: str, private: Path, archives: Path | None) -> Iterator[Session]:
    machine = java.find()
    spark = f"{pyspark.__version__}{pyspark.__file__}"
    archive = java.Archive(archives, machine, "spark", spark) if archives and _is_local(master) else None
    conf = SparkConf(loadDefaults=False).setMaster(master)
    conf.setAll(_settings(master, private, archive.option if archive else "").items())
    with _python_of_workers(master), virtual_machine(conf, private / "spark.log") as gateway:
        with _or_unavailable(master):
            context = SparkContext(conf=conf, gateway=gateway)
        try:
            with _or_unavailable(master):  # a context may notice late that nobody is there
                spark, parallelism = SparkSession(context), context.defaultParallelism
                if not _is_local(master):
                    context.addPyFile(str(_package(private)))
            yield Session(spark, master, parallelism)
        finally:
            context.stop()
    if archive:
        archive.keep()


@contextmanager
def _or_unavailable(master: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise Unavailable(f"{master}: Spark did not start ({reason_in(str(error))}): check --master") from error


def _settings(master: str, private: Path, archive_option: str) -> dict[str, str]:
    (private / "log4j2.properties").write_text(_LOG4J)
    settings = _SETTINGS | {
        "spark.local.dir": str(private),
        "spark.sql.warehouse.dir": str(private / "warehouse"),
    }
    options = f"-Dlog4j2.configurationFile={private}/log4j2.properties -Djava.io.tmpdir={private}"
    if _is_local(master):
        settings |= _LOCAL_SETTINGS
        options = f"{_LOCAL_JAVA} {archive_option} {options}"
    return settings | {"spark.driver.extraJavaOptions": options}


def _is_local(master: str) -> bool:
    return master.startswith("local")


@contextmanager
def _python_of_workers(master: str) -> Iterator[None]:
    """Workers on this machine run the Python that runs us; elsewhere, what the user says."""
    before = os.environ.get("PYSPARK_PYTHON")
    here = "//127.0.0.1:" in master or "//localhost:" in master
    if _is_local(master) or (here and before is None):
        os.environ["PYSPARK_PYTHON"] = sys.executable
    try:
        yield
    finally:
        os.environ.pop("PYSPARK_PYTHON", None)
        if before is not None:
            os.environ["PYSPARK_PYTHON"] = before


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

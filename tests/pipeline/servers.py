"""Real Spark servers on loopback, from PySpark's own jars."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from ackworth.broker.ports import Ports

HOME = Path(pyspark.__file__).parent
# A server that lives for seconds is not worth being compiled well.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@contextmanager
def server(directory: Path, name: str, *command: str, ready: str, **environment: str) -> Iterator[None]:
    """A Spark process, from the moment that its log says it is ready."""
    log = directory / f"{name}.log"
    own = {"SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_JAVA_OPTS": QUICK}
    env = {**os.environ, **own, **environment}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=env, cwd=directory)
    try:
        _await(log, ready, process)
        yield
    finally:
        process.terminate()
        process.wait(120)


def _await(log: Path, ready: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 150
    while ready not in log.read_text(errors="replace"):
        if process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"{log.name} never said {ready!r}:\n{log.read_text(errors='replace')}")
        time.sleep(0.05)


@contextmanager
def standalone_cluster(directory: Path) -> Iterator[str]:
    """The address of a master with one worker."""
    spark_class = str(HOME / "bin/spark-class")
    master = ("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port")
    worker = ("org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "2", "--memory", "1g")
    with Ports() as ports:
        port, *pages = (str(ports.reserve()) for _ in range(3))
        master += (port, "--webui-port", pages[0])
        worker += ("--work-dir", str(directory / "work"), "--webui-port", pages[1], f"spark://127.0.0.1:{port}")
        with (
            server(directory, "master", spark_class, *master, ready="New state: ALIVE"),
            server(directory, "worker", spark_class, *worker, ready="Successfully registered with master"),
        ):
            yield f"spark://127.0.0.1:{port}"


@contextmanager
def connect_server(directory: Path, python: str) -> Iterator[str]:
    """The address of a Spark Connect server."""
    with Ports() as ports, _connect_server(directory, python, ports.reserve()) as url:
        yield url


@contextmanager
def _connect_server(directory: Path, python: str, port: int) -> Iterator[str]:
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.local.dir": str(directory),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    options = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    submit = (str(HOME / "bin/spark-submit"), "--master", "local[2]", "--driver-java-options", QUICK, *options)
    service = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal")
    with server(
        directory,
        "connect",
        *submit,
        *service,
        ready="Spark Connect server started at",
        SPARK_CONNECT_MODE="0",
        PYSPARK_PYTHON=python,
    ):
        yield f"sc://127.0.0.1:{port}"

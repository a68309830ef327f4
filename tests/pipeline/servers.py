"""Real Spark servers on loopback, from PySpark's own jars."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

HOME = Path(pyspark.__file__).parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def server(directory: Path, name: str, *command: str, ready: str, **environment: str) -> Iterator[None]:
    """A Spark process, from the moment that its log says it is ready."""
    log = directory / f"{name}.log"
    env = {**os.environ, "SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1", **environment}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=env, cwd=directory)
    try:
        _await(log, ready, process)
        yield
    finally:
        process.terminate()
        process.wait(30)


def _await(log: Path, ready: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 90
    while ready not in log.read_text(errors="replace"):
        if process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"{log.name} never said {ready!r}:\n{log.read_text(errors='replace')}")
        time.sleep(0.05)


@contextmanager
def standalone_cluster(directory: Path) -> Iterator[str]:
    """The address of a master with one worker."""
    port = free_port()
    spark_class = str(HOME / "bin/spark-class")
    master = ("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port))
    worker = ("org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "2", "--memory", "1g")
    work = ("--work-dir", str(directory / "work"), "--webui-port", str(free_port()), f"spark://127.0.0.1:{port}")
    with (
        server(directory, "master", spark_class, *master, "--webui-port", str(free_port()), ready="New state: ALIVE"),
        server(directory, "worker", spark_class, *worker, *work, ready="Successfully registered with master"),
    ):
        yield f"spark://127.0.0.1:{port}"


@contextmanager
def connect_server(directory: Path, python: str) -> Iterator[str]:
    """The address of a Spark Connect server."""
    port = free_port()
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
    submit = (str(HOME / "bin/spark-submit"), "--master", "local[2]", *options)
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

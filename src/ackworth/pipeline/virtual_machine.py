"""The virtual machine that Spark runs in: launched, and gone at the end, whatever comes in between."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from ackworth.model.errors import Unavailable
from ackworth.model.interrupts import interrupts_wait


@contextmanager
def virtual_machine(conf: SparkConf, log: Path) -> Iterator[Any]:
    """A JVM that prints into a file, and is gone at the end."""
    with ExitStack() as stack:
        # Who launches a JVM cannot end it before it is there.
        with log.open("wb") as output, interrupts_wait(), _temporary_files_in(log.parent):
            try:
                gateway = launch_gateway(conf, {"stdout": output, "stderr": output})
            except Exception as error:
                said = log.read_text(errors="replace") or str(error)
                raise Unavailable(f"Spark did not start ({reason_in(said)}): check --master and JAVA_HOME") from error
            stack.callback(_end, gateway)
        yield gateway


def _end(gateway: Any) -> None:
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    # Forgotten, so that another session can start one.
    SparkContext._gateway = None
    SparkContext._jvm = None


@contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    """What PySpark makes while it launches lies where it is found if we are killed meanwhile."""
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


def reason_in(text: str) -> str:
    """What an error of Spark's says, without the names of classes and the trace."""
    found = re.search(r"(?:Exception|Error): (.+)", text)
    return found[1] if found else text.strip().partition("\n")[0]

"""Starting Spark, or saying in one line why not."""

from pathlib import Path

import pytest

from ackworth.model.errors import Unavailable
from ackworth.pipeline.session import session


def test_no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        pytest.raises(Unavailable, match=r"^there is no Java: install a Java 17 runtime or later"),
        session(),
    ):
        pass


def test_no_connect_server() -> None:
    with (
        pytest.raises(Unavailable, match=r"^sc://127.0.0.1:1: no Spark Connect server answers"),
        session("sc://127.0.0.1:1"),
    ):
        pass

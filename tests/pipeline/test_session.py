"""Starting Spark, or saying in one line why not."""

import os
from pathlib import Path

import pytest

from ackworth.model.errors import Unavailable
from ackworth.pipeline.java import Archive, Java, find_java
from ackworth.pipeline.session import session


def test_no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        pytest.raises(Unavailable, match=r"^Spark needs Java, and there is none: install a Java 17 runtime or later"),
        session(),
    ):
        pass


def test_java_home_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Unavailable, match=f"there is none in {tmp_path}"):
        find_java()


@pytest.mark.parametrize(("said", "version"), [('openjdk version "11.0.2"', "11"), ('java version "1.8.0_292"', "8")])
def test_an_old_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, version: str) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Unavailable, match=f"is Java {version}: install a Java 17"):
        find_java()


def test_no_connect_server() -> None:
    with (
        pytest.raises(Unavailable, match=r"^sc://127.0.0.1:1: no Spark Connect server answers"),
        session("sc://127.0.0.1:1"),
    ):
        pass


def test_the_archive_is_kept_only_when_it_was_written(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "cache", Java("java", "17"))
    assert archive.option.startswith("-XX:ArchiveClassesAtExit=")
    archive.keep()
    assert not list((tmp_path / "cache").iterdir())
    Path(archive.option.partition("=")[2]).write_bytes(b"classes")
    archive.keep()
    assert archive.option == f"-XX:SharedArchiveFile={next((tmp_path / 'cache').iterdir())}"
    assert str(os.getpid()) not in archive.option

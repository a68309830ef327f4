"""Java is found in one place, and what is wrong with it is said in one line."""

import os
from pathlib import Path

import pytest

from ackworth.model import java
from ackworth.model.errors import Unavailable


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_252"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("what?", None),
    ],
)
def test_versions(said: str, version: int | None) -> None:
    assert java.Java("java", said).version == version


def test_java_home_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Unavailable, match=f"^there is no Java in {tmp_path}: install"):
        java.find()


@pytest.mark.parametrize(("said", "version"), [('openjdk version "11.0.2"', "11"), ('java version "1.8.0_292"', "8")])
def test_an_old_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, version: str) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Unavailable, match=f"is Java {version}: install a Java 17"):
        java.find()


def test_the_archive_is_kept_only_when_it_was_written(tmp_path: Path) -> None:
    archive = java.Archive(tmp_path / "cache", java.Java("java", "17"), "spark", "4")
    assert archive.option.startswith("-XX:ArchiveClassesAtExit=")
    archive.keep()
    assert not list((tmp_path / "cache").iterdir())
    Path(archive.option.partition("=")[2]).write_bytes(b"classes")
    archive.keep()
    assert archive.option == f"-XX:SharedArchiveFile={next((tmp_path / 'cache').iterdir())}"
    assert str(os.getpid()) not in archive.option

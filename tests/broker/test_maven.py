"""Jars: all of them or none, and one line when they cannot be had."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ackworth.broker import debian
from ackworth.broker.maven import Jars
from ackworth.model.errors import Unavailable

JARS = Jars("thing-1.2", ("org.example:thing:1.2", "org.example:other:3"))


@pytest.fixture
def mvn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """A Maven of our own; it is run where the pom is."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def make(script: str) -> Path:
        (tmp_path / "mvn").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "mvn").chmod(0o755)
        return tmp_path / "cache" / "ackworth"

    return make


def test_what_is_fetched_is_whole(mvn: Callable[[str], Path]) -> None:
    cache = mvn("mkdir jars && cp pom.xml jars/")
    assert not JARS.there()
    assert JARS.fetch() == "fetched thing-1.2 from Maven Central"
    assert JARS.there() and [path.name for path in cache.iterdir()] == ["thing-1.2"]
    pom = (cache / "thing-1.2" / "pom.xml").read_text()
    assert "<artifactId>thing</artifactId><version>1.2</version>" in pom and "<version>3</version>" in pom


def test_what_could_not_be_fetched_is_not_there(mvn: Callable[[str], Path]) -> None:
    cache = mvn("mkdir jars; echo noise; echo '[ERROR] Could not find artifact org.example:thing'; exit 1")
    with pytest.raises(Unavailable, match=r"could not fetch thing-1\.2: Could not find"):
        JARS.fetch()
    assert not JARS.there() and list(cache.iterdir()) == []


def test_maven_is_installed_if_need_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))

    def cannot(package: str) -> str:
        raise Unavailable(f"no {package}")

    monkeypatch.setattr(debian, "install", cannot)
    with pytest.raises(Unavailable, match="no maven"):
        JARS.fetch()

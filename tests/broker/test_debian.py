"""Installing a package: no service is left running, and what cannot be done is said in one line."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ackworth.broker import debian, registry
from ackworth.broker.redis_streams import BROKER
from ackworth.cli import main as cli
from ackworth.model.errors import Unavailable


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts an apt-get of our own first, and tools that note how they were called."""
    folder, calls, policy = tmp_path / "bin", tmp_path / "calls", tmp_path / "policy-rc.d"
    folder.mkdir()
    calls.touch()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(debian, "_POLICY", str(policy))
    monkeypatch.setattr("os.geteuid", lambda: 0)

    def make(apt_get: str) -> Path:
        for name, script in {"apt-get": apt_get, "service": "true", "update-rc.d": "true"}.items():
            (folder / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {calls}\n{script}\n')
            (folder / name).chmod(0o755)
        return calls

    return make


def test_no_service_may_start_while_it_is_installed(tools: Callable[[str], Path], tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    calls = tools(f"{policy}; echo policy $? >> {tmp_path / 'calls'}")
    assert "does not start at boot" in debian.install("a-broker", "a-service")
    assert calls.read_text().splitlines() == [
        "apt-get install -q -y --no-install-recommends a-broker",
        "policy 101",
        "service a-service stop",
        "update-rc.d a-service disable",
    ]
    assert not policy.exists()


def test_a_package_without_a_service(tools: Callable[[str], Path]) -> None:
    calls = tools("true")
    assert debian.install("a-tool") == "installed Debian's a-tool"
    assert [line.split()[0] for line in calls.read_text().splitlines()] == ["apt-get"]


def test_a_policy_of_the_administrator_stays(tools: Callable[[str], Path], tmp_path: Path) -> None:
    tools("true")
    (tmp_path / "policy-rc.d").write_text("theirs")
    debian.install("a-broker", "a-service")
    assert (tmp_path / "policy-rc.d").read_text() == "theirs"


def test_the_lists_are_brought_up_to_date_if_need_be(tools: Callable[[str], Path], tmp_path: Path) -> None:
    calls = tools(f'[ "$1" = update ] && touch {tmp_path}/fresh; [ -e {tmp_path}/fresh ]')
    debian.install("a-broker", "a-service")
    assert [line.split()[1] for line in calls.read_text().splitlines()[:3]] == ["install", "update", "install"]


def test_a_failure_shows_its_last_line_and_leaves_no_policy(tools: Callable[[str], Path], tmp_path: Path) -> None:
    tools("echo 'E: Unable to locate package a-broker' >&2; exit 100")
    with pytest.raises(Unavailable, match="apt-get install a-broker failed: E: Unable to locate package a-broker"):
        debian.install("a-broker", "a-service")
    assert not (tmp_path / "policy-rc.d").exists()


def test_without_root(tools: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = tools("true")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    sudo = tmp_path / "bin" / "sudo"
    sudo.write_text("#!/bin/sh\nexit 1\n")
    sudo.chmod(0o755)
    with pytest.raises(Unavailable, match="needs root: run `apt-get install a-broker` as root"):
        debian.install("a-broker", "a-service")
    assert calls.read_text() == ""
    sudo.write_text('#!/bin/sh\nshift\nexec "$@"\n')
    assert "installed" in debian.install("a-broker", "a-service")


def test_without_apt_get(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="no apt-get here: install a-broker with this system's own tools"):
        debian.install("a-broker", "a-service")


# ---- the command ---------------------------------------------------------------------------------------------


def test_the_command_installs_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing: list[str | None] = ["not here", "not here", None]
    monkeypatch.setattr(
        type(BROKER), "missing", lambda self, topology="single": missing.pop(0) if len(missing) > 1 else None
    )
    monkeypatch.setattr(type(BROKER), "version", lambda self: "Redis 7")
    monkeypatch.setattr(debian, "install", lambda package, service: f"installed {package}")
    assert cli.main(["brokers", "install", "brook-sqlite", "redis-streams"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("brook-sqlite: ready: ")
    assert said[1].startswith("redis-streams: installed redis-server")


def test_a_wrong_name_installs_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(debian, "install", lambda package, service: pytest.fail("it was installed"))
    assert cli.main(["brokers", "install", "redis-streams", "rediss"]) == 2
    assert "unknown broker 'rediss'" in capsys.readouterr().err


def test_without_a_name_all_are_installed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(registry, "brokers", lambda: {"redis-streams": BROKER})
    monkeypatch.setattr(type(BROKER), "missing", lambda *_: None)
    monkeypatch.setattr(type(BROKER), "version", lambda self: "Redis 7")
    assert cli.main(["brokers", "install"]) == 0
    assert capsys.readouterr().out == "redis-streams: ready: Redis 7\n"

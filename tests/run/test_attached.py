"""A user's own broker: reached with credentials and TLS, broken by the user's commands, left as it was."""

import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis

from ackworth.broker.contract import Place
from ackworth.broker.ports import HOST, Ports
from ackworth.broker.process import wait_until
from ackworth.broker.redis_streams import RedisStreams, configuration
from ackworth.broker.server import Server
from ackworth.cli.main import main
from ackworth.driver.contract import load
from ackworth.model.errors import BadInput
from ackworth.pipeline.trial import judge_trial
from ackworth.plan import resolve
from ackworth.plan.tree import parse
from ackworth.run.attached import Attachment, CommandFailed, attach
from ackworth.run.conductor import Conductor
from ackworth.testing.drivers import check_driver
from ackworth.testing.engine import Inline
from tests.run.test_conductor import Silent, Told, assert_nothing_lost

pytestmark = pytest.mark.real

PLAN = """
name: tiny
title: a tiny plan at a broker of one's own
broker: {kind: redis-streams}
workload:
  topics: 4
  producers: 2
  consumers: 2
  window: 2000
  batch: 500
  drain: {quiet: 300ms}
  phases: [{name: send, messages: 40_000, rate: 40_000}]
"""


@dataclass
class Theirs:
    """A server that is not started by a run, with a password, plain and with TLS."""

    server: Server
    place: Place
    authority: Path

    def url(self, scheme: str = "redis", password: str = "s3cret") -> str:
        port = self.place.ports["tls" if scheme == "rediss" else "client"]
        end = f"?ca={self.authority}" if scheme == "rediss" else ""
        return f"{scheme}://:{password}@{'localhost' if scheme == 'rediss' else HOST}:{port}{end}"

    def client(self) -> redis.Redis:
        return redis.Redis(host=HOST, port=self.place.ports["client"], password="s3cret")


def certify(folder: Path) -> Path:
    """A certificate for localhost that is its own authority."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost -keyout {key} -out {certificate}"
    subprocess.run(shlex.split(command), check=True, capture_output=True)
    return certificate


@pytest.fixture
def theirs(tmp_path: Path, redis_streams: RedisStreams) -> Iterator[Theirs]:
    folder = tmp_path / "theirs"
    folder.mkdir()
    certificate = certify(folder)
    with Ports() as ports:
        place = Place(data=folder, logs=folder, ports={name: ports.reserve() for name in ("client", "tls")})
        lines = [
            configuration(place, "always"),
            "requirepass s3cret",
            f"tls-port {place.ports['tls']}",
            f"tls-cert-file {certificate}",
            f"tls-key-file {folder / 'key.pem'}",
            "tls-auth-clients no",
        ]
        node = redis_streams.node("redis", place, {"appendonly": "always"})
        (folder / "redis.conf").write_text("\n".join(lines) + "\n")
        assert isinstance(node, Server)
        node.start()
        found = Theirs(node, place, certificate)
        wait_until_up(found)
        yield found
        node.stop()


def wait_until_up(theirs: Theirs) -> None:
    def up() -> bool:
        try:
            return bool(theirs.client().ping())
        except redis.RedisError:
            return False

    wait_until(up, 20, "their server is up")


def conduct(tmp_path: Path, attachment: Attachment, *sets: str) -> Told:
    (trial,) = resolve.trials(parse(PLAN, "tiny.yaml"), "small", sets)
    directory = tmp_path / "trial"
    return Told(directory, Conductor(trial, directory, "00000000000000aa", 7, Silent(), attachment).run())


@pytest.mark.parametrize("scheme", ["redis", "rediss"])
def test_a_trial_at_their_broker_leaves_nothing_there(tmp_path: Path, theirs: Theirs, scheme: str) -> None:
    with theirs.client() as client:
        client.set("of their own", "kept")
        told = conduct(tmp_path, attach(theirs.url(scheme), []))
        assert_nothing_lost(told, 40_000)
        assert client.keys() == [b"of their own"]
        result = judge_trial(str(told.directory), Inline())
        assert result["verdict"] == "held"
        assert result["broker"]["version"] == f"Redis {client.info()['redis_version']}"
    assert "s3cret" not in "".join(path.read_text() for path in told.directory.glob("*.json"))
    assert result["broker"]["attached"].startswith(f"{scheme}://:***@")


def test_the_driver_is_the_same_over_tls(theirs: Theirs) -> None:
    address = attach(theirs.url("rediss"), []).address

    def fresh() -> dict[str, object]:
        theirs.client().flushall()
        return address

    check_driver(load("resp"), fresh)


def test_their_commands_break_and_start_it(tmp_path: Path, theirs: Theirs) -> None:
    [pid] = theirs.server.processes()
    config = theirs.place.logs / "redis.conf"
    start = f"redis-server {config} --daemonize yes --pidfile {tmp_path / 'pid'} --logfile {tmp_path / 'log'}"
    attachment = attach(theirs.url(), [f"kill=kill -9 {pid}", f"start={start}"])
    try:
        told = conduct(tmp_path, attachment, "faults=[{kind: kill, at: 40%, down: 50ms}]")
    finally:
        os.kill(int((tmp_path / "pid").read_text()), 9)
    assert told.end.problems == () and told.marks("fault") == told.marks("ready") == ["kill"]
    assert_nothing_lost(told, 40_000)


def test_a_command_that_fails_is_a_problem_in_words(tmp_path: Path, theirs: Theirs) -> None:
    attachment = attach(theirs.url(), ["kill=echo no such host >&2; exit 7"])
    told = conduct(tmp_path, attachment, "faults=[{kind: kill, at: 40%}]")
    assert told.end.problems == ("the command for 'kill' ended with code 7: no such host",)
    assert judge_trial(str(told.directory), Inline())["verdict"] == "unknown"
    assert issubclass(CommandFailed, Exception) and theirs.client().keys() == []


@pytest.mark.parametrize("wrong", ["password", "port", "authority", "plain"])
def test_what_cannot_be_reached_is_one_line_and_leaves_nothing(
    tmp_path: Path, theirs: Theirs, wrong: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, said = {
        "password": (theirs.url(password="wr0ng"), "WRONGPASS"),
        "port": (f"redis://:s3cret@{HOST}:1", "Connection refused"),
        "authority": (theirs.url("rediss").partition("?")[0], "certificate verify failed"),
        "plain": (theirs.url().replace("redis:", "rediss:"), "handshake operation timed out"),
    }[wrong]
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(PLAN)
    assert main(["run", "tiny.yaml", "--attach", url, "--out", "run"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("ackworth: --attach redis") and line.endswith(": check the address and the credentials")
    assert said in line and "s3cret" not in line and "wr0ng" not in line
    assert not Path("run").exists()


def test_a_fault_without_a_command_is_not_tried(
    tmp_path: Path, theirs: Theirs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(PLAN + "faults: [{kind: kill, at: 50%}]\n")
    assert main(["run", "tiny.yaml", "--attach", theirs.url(), "--out", "run"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.endswith("add --on kill='COMMAND' for the fault 'kill'") and "s3cret" not in line
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("on", "said"),
    [("kill", "write it as FAULT=COMMAND"), ("kil=x", "unknown fault 'kil': did you mean 'kill'?")],
)
def test_a_wrong_command_is_named(theirs: Theirs, on: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        attach(theirs.url(), [on])
    assert said in str(caught.value)


def test_from_the_command_with_what_cannot_be_broken_left_out(
    tmp_path: Path, theirs: Theirs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ackworth.cli.judging.judge_and_report", lambda *_: 0)
    cases = "cases:\n  calm: {}\n  killed: {faults: [{kind: kill, at: 50%}]}\n"
    Path("tiny.yaml").write_text(PLAN + cases)
    assert main(["run", "tiny.yaml", "--attach", theirs.url(), "--out", "run"]) == 0
    said = capsys.readouterr().err
    assert "killed: left out: nothing says how to do 'kill' (--on kill='COMMAND')" in said
    run = json.loads(Path("run/run.json").read_text())
    assert (run["attached"], run["trials"]) == (f"redis://:***@{HOST}:{theirs.place.ports['client']}", ["calm"])
    assert main(["rerun", "run"]) == 2
    assert "give the URL again with --attach" in capsys.readouterr().err

"""A user's own Redis: with a password and TLS; and what holds for every kind, shown with it."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from ackworth.broker.contract import Place
from ackworth.broker.ports import HOST
from ackworth.broker.redis_streams import BROKER, configuration
from ackworth.cli.main import main
from ackworth.driver.contract import load
from ackworth.model.errors import BadInput
from ackworth.pipeline.trial import judge_trial
from ackworth.run.attached import attach
from ackworth.testing.drivers import check_driver
from ackworth.testing.engine import Inline
from tests.run.attached.suite import (
    NOBODY,
    PLAN,
    SECRET,
    WRITTEN,
    Suite,
    Theirs,
    assert_no_secret,
    conduct,
    theirs_of,
    wait_until_up,
)
from tests.run.test_conductor import assert_nothing_lost

pytestmark = pytest.mark.real


def secured(theirs: Theirs, place: Place) -> None:
    lines = [
        configuration(place, "always").strip(),
        f'requirepass "{SECRET}"',
        f"tls-port {place.ports['tls']}",
        f"tls-cert-file {theirs.certificates.server}",
        f"tls-key-file {theirs.certificates.server_key}",
        "tls-auth-clients no",
    ]
    (place.logs / "redis.conf").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theirs]:
    with theirs_of(BROKER, tmp_path_factory.mktemp("redis"), secured, "tls") as found:
        plain, tls = f"{HOST}:{found.ports['client']}", f"localhost:{found.ports['tls']}"
        found.links = {
            "plain": f"redis://:{WRITTEN}@{plain}",
            "tls": f"rediss://:{WRITTEN}@{tls}/1?{found.certificates.trusted}",
        }
        found.wrong = {
            "password": (f"redis://:wr0ng@{plain}", "WRONGPASS"),
            "port": (f"redis://:{WRITTEN}@{NOBODY}", "Connection refused"),
            "authority": (f"rediss://:{WRITTEN}@{tls}", "certificate verify failed"),
            "tls to plain": (f"rediss://:{WRITTEN}@{plain}", "handshake operation timed out"),
            "plain to tls": (f"redis://:{WRITTEN}@{tls}", "check the address"),
        }
        wait_until_up(found, found.links["plain"])
        client(found).set("of their own", "kept")
        found.left = lambda: left(found)
        yield found


def client(theirs: Theirs, database: int = 0) -> redis.Redis:
    return redis.Redis(host=HOST, port=theirs.ports["client"], password=SECRET, db=database)


def left(theirs: Theirs) -> set[str]:
    keys = [key.decode() for database in (0, 1) for key in client(theirs, database).scan_iter()]
    assert "of their own" in keys
    return {*keys} - {"of their own"}


class TestRedis(Suite):
    waited_out = ("tls to plain",)
    version = r"Redis \d"


def test_the_driver_is_the_same_over_tls(theirs: Theirs) -> None:
    address = attach(theirs.links["tls"], []).address({}, "")

    def fresh() -> dict[str, object]:
        client(theirs, 1).flushdb()
        return address

    check_driver(load("resp"), fresh)
    client(theirs, 1).flushdb()


def test_their_commands_end_and_start_it(tmp_path: Path, theirs: Theirs) -> None:
    config = theirs.certificates.folder / "redis.conf"
    start = f"redis-server {config} --daemonize yes --pidfile {tmp_path / 'pid'} --logfile {tmp_path / 'log'}"
    attachment = attach(theirs.links["plain"], [f"kill={theirs.command('KILL')}", f"start={start}"])
    try:
        told = conduct(tmp_path, attachment, "faults=[{kind: kill, at: 40%, down: 50ms}]")
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        theirs.node.start()
        wait_until_up(theirs, theirs.links["plain"])
    assert told.end.problems == () and told.marks("fault") == told.marks("ready") == ["kill"]
    assert_nothing_lost(told, 1_000)


def test_a_broker_that_stays_away_keeps_what_was_made_and_that_is_said(
    tmp_path: Path, theirs: Theirs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ackworth.run.conductor.RECOVERED_WITHIN", 0.2)
    attachment = attach(theirs.links["plain"], [f"kill={theirs.command('KILL')}"])
    try:
        told = conduct(tmp_path, attachment, "faults=[{kind: kill, at: 40%}]")
    finally:
        theirs.node.start()
        wait_until_up(theirs, theirs.links["plain"])
    [note] = told.end.notes
    assert note.startswith("topics ackworth-00000000000000aa-") and "could not be removed: 127.0.0.1" in note
    assert told.end.problems[0].startswith("the broker was not ready within 0.2 s")
    assert len(left(theirs)) == 4
    client(theirs).delete(*left(theirs))


def test_a_command_that_fails_is_a_problem_in_words(tmp_path: Path, theirs: Theirs) -> None:
    attachment = attach(theirs.links["plain"], ["kill=echo no such host >&2; exit 7"])
    told = conduct(tmp_path, attachment, "faults=[{kind: kill, at: 40%}]")
    assert told.end.problems == ("the command for 'kill' ended with code 7: no such host",)
    assert judge_trial(str(told.directory), Inline())["verdict"] == "unknown"
    assert not theirs.left()


def test_a_fault_without_a_command_is_not_tried(
    tmp_path: Path, theirs: Theirs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(PLAN.format(kind=theirs.kind) + "faults: [{kind: kill, at: 50%}]\n")
    assert main(["run", "tiny.yaml", "--attach", theirs.links["plain"], "--out", "run"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.endswith("add --on kill='COMMAND' for the fault 'kill'") and "s3cret" not in line
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("on", "said"),
    [("kill", "write it as FAULT=COMMAND"), ("kil=x", "unknown fault 'kil': did you mean 'kill'?")],
)
def test_a_wrong_command_is_named(theirs: Theirs, on: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        attach(theirs.links["plain"], [on])
    assert said in str(caught.value)


def test_from_the_command_to_the_report_and_to_a_rerun_nothing_secret_is_told(
    tmp_path: Path, theirs: Theirs, inline: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    cases = "cases:\n  calm: {}\n  killed: {faults: [{kind: kill, at: 50%}]}\n"
    Path("tiny.yaml").write_text(PLAN.format(kind=theirs.kind) + cases)
    assert main(["run", "tiny.yaml", "--attach", theirs.links["plain"], "--out", "run"]) == 0
    run = json.loads(Path("run/run.json").read_text())
    assert (run["attached"], run["trials"]) == (f"redis://:***@{HOST}:{theirs.ports['client']}", ["calm"])
    assert main(["rerun", "run"]) == 2
    assert main(["rerun", "run", "--attach", theirs.links["plain"], "--out", "again"]) == 0
    told = capsys.readouterr()
    assert "killed: left out: nothing says how to do 'kill' (--on kill='COMMAND')" in told.err
    assert "give the URL again with --attach" in told.err
    assert "s3cret" not in told.out + told.err
    assert Path("run/report.html").exists() and Path("again/report.html").exists()
    assert_no_secret(tmp_path)

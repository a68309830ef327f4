"""What holds for every kind of broker that is a user's own. A module of a kind has a subclass of `Suite`."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ackworth.broker import registry
from ackworth.broker.contract import Broker, Node, Place
from ackworth.broker.ports import HOST, Ports
from ackworth.broker.process import kill_all, wait_until
from ackworth.cli.main import main
from ackworth.model.errors import BadInput
from ackworth.pipeline.trial import judge_trial
from ackworth.plan import resolve
from ackworth.plan.tree import parse
from ackworth.run.attached import Attachment, attach
from ackworth.run.conductor import Conductor
from ackworth.testing.engine import Inline
from tests.conftest import had
from tests.run.attached.certificates import Certificates
from tests.run.test_conductor import Silent, Told, assert_nothing_lost

SECRET = "s3cret/?#@%"
WRITTEN = "s3cret%2F%3F%23%40%25"  # as it is in a URL
PLAN = """
name: tiny
title: a tiny plan at a broker of one's own
broker: {{kind: {kind}}}
workload:
  topics: 4
  producers: 2
  consumers: 2
  groups: 2
  window: 200
  batch: 50
  drain: {{quiet: 300ms}}
  phases: [{{name: send, messages: 1_000, rate: 1_000}}]
"""
NOBODY = f"{HOST}:1"  # no server listens there
PATIENCE = 120.0  # seconds for whatever must come


@dataclass
class Theirs:
    """A server that is not started by a run."""

    kind: str
    node: Node
    ports: dict[str, int]
    certificates: Certificates
    left: Callable[[], set[str]] = set  # names of what is there and was not in the beginning
    links: dict[str, str] = field(default_factory=dict)  # URLs that lead to it
    wrong: dict[str, tuple[str, str]] = field(default_factory=dict)  # URLs that do not, and what is said then

    @property
    def first(self) -> str:
        return next(iter(self.links.values()))

    def command(self, signal: str) -> str:
        """What sends a signal to all of it; a library that nobody has loaded is nothing."""
        return "; ".join(f"kill -{signal} {pid}" for pid in self.node.processes()) or "true"


@contextmanager
def theirs_of(broker: Broker, folder: Path, configure: Callable[[Theirs, Place], None], *more: str) -> Iterator[Theirs]:
    """Its own node, told more than a run would tell it: more are names of ports."""
    certificates = Certificates(folder)
    with Ports() as ports:
        place = Place(data=folder / "data", logs=folder, ports={n: ports.reserve() for n in (*broker.ports, *more)})
        place.data.mkdir()
        [name] = had(broker).nodes("single")
        (node,) = broker.build({name: place}, registry.settle(broker, {}))
        found = Theirs(broker.name, node, dict(place.ports), certificates)
        configure(found, place)
        node.start()
        try:
            yield found
        finally:
            kill_all(node.processes)  # nobody will read what it would save
            node.stop()


def wait_until_up(theirs: Theirs, url: str) -> None:
    """Raises if it ends instead."""

    def up() -> bool:
        theirs.node.look()
        try:
            return bool(attach(url, []))
        except BadInput:
            return False

    wait_until(up, PATIENCE, "their server is up")


def conduct(tmp_path: Path, attachment: Attachment, *sets: str) -> Told:
    (trial,) = resolve.trials(parse(PLAN.format(kind=attachment.kind), "tiny.yaml"), "small", sets)
    directory = tmp_path / "trial"
    return Told(directory, Conductor(trial, directory, "00000000000000aa", 7, Silent(), attachment).run())


def assert_no_secret(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    for secret in (SECRET, WRITTEN):
        assert [path for path in files if secret.encode() in path.read_bytes()] == []


class Suite:
    links: tuple[str, ...] = ("tls",)  # those that a trial goes through; another goes through the first of all
    wrong: tuple[str, ...] = ("password", "port", "authority", "tls to plain", "plain to tls")
    waited_out: tuple[str, ...] = ()  # those mistakes at which nobody says no: all the time that there is goes by
    hangs_up: tuple[str, ...] = ()  # those at which it may hang up before it has said why: it is asked again
    version = r"\d"  # what it says of itself
    stays = False  # whether something is left there, as the notes say

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        for name, values in (("link", self.links), ("mistake", self.wrong)):
            if name in metafunc.fixturenames:
                metafunc.parametrize(name, values)

    def test_a_trial_leaves_nothing_there(self, tmp_path: Path, theirs: Theirs, link: str) -> None:
        attachment = attach(theirs.links[link], [])
        assert re.search(self.version, attachment.version)
        told = conduct(tmp_path, attachment)
        assert_nothing_lost(told, 1_000)
        self.assert_nothing_left(theirs)
        result = judge_trial(str(told.directory), Inline())
        assert result["verdict"] == "held", result["checks"]
        assert (result["broker"]["version"], result["broker"]["attached"]) == (attachment.version, attachment.shown)
        assert bool(told.end.notes) == self.stays
        assert_no_secret(told.directory)
        assert SECRET not in repr(attachment) and WRITTEN not in repr(attachment)

    def assert_nothing_left(self, theirs: Theirs) -> None:
        wait_until(lambda: not theirs.left(), PATIENCE, "what was made is removed")

    def test_their_commands_break_and_mend_it(self, tmp_path: Path, theirs: Theirs) -> None:
        on = [f"pause={theirs.command('STOP')}", f"start={theirs.command('CONT')}"]
        attachment = attach(theirs.first, on)
        told = conduct(tmp_path, attachment, "faults=[{kind: pause, at: 40%, down: 300ms}]")
        assert told.end.problems == () and told.marks("fault") == told.marks("ready") == ["pause"]
        assert_nothing_lost(told, 1_000)
        assert_no_secret(told.directory)
        self.assert_nothing_left(theirs)

    def test_what_cannot_be_reached_is_one_line_and_leaves_nothing(
        self,
        tmp_path: Path,
        theirs: Theirs,
        mistake: str,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        url, said = theirs.wrong[mistake]
        monkeypatch.chdir(tmp_path)
        if mistake in self.waited_out:
            monkeypatch.setattr("ackworth.driver.wire.CONNECT_WITHIN", 1.0)
            monkeypatch.setattr("ackworth.driver.librdkafka.ANSWER_WITHIN", 2.0)
        Path("tiny.yaml").write_text(PLAN.format(kind=theirs.kind))
        for _ in range(20 if mistake in self.hangs_up else 1):
            assert main(["run", "tiny.yaml", "--attach", url, "--out", "run"]) == 2
            [line] = capsys.readouterr().err.splitlines()
            if "closed by the other side" not in line:
                break
        assert line.startswith(f"ackworth: --attach {url.partition('://')[0]}://")
        assert said in line and SECRET not in line and WRITTEN not in line and "wr0ng" not in line
        assert not Path("run").exists() and not theirs.left()

    def test_an_interrupted_run_leaves_nothing_there(self, tmp_path: Path, theirs: Theirs) -> None:
        plan = PLAN.format(kind=theirs.kind).replace("1_000, rate", "1_000_000, rate") + "  consume: after\n"
        (tmp_path / "tiny.yaml").write_text(plan)
        told = ["tiny.yaml", "--attach", theirs.first, "--out", "run"]
        with subprocess.Popen(
            [sys.executable, "-m", "ackworth.cli.main", "run", *told],
            cwd=tmp_path,
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as run:
            wait_until(lambda: theirs.left() or run.poll(), PATIENCE, "it has begun")
            run.send_signal(signal.SIGINT)
            output, _ = run.communicate(timeout=PATIENCE)
        assert run.returncode == 2 and "interrupted; the record so far is in run" in output
        self.assert_nothing_left(theirs)
        assert SECRET not in output and WRITTEN not in output
        assert_no_secret(tmp_path / "run")
        [end] = [json.loads(path.read_text()) for path in tmp_path.glob("run/trials/*/end.json")]
        assert end["problems"] == ["it was interrupted"] and bool(end["notes"]) == self.stays

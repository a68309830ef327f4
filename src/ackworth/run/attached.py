"""A user's own broker in the place of nodes on this machine: reached, broken only by the user's own commands."""

import os
import random
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from ackworth.broker import registry, urls
from ackworth.broker.contract import Attachable, Broker, Node
from ackworth.driver import contract as drivers
from ackworth.driver.wire import Deadline
from ackworth.fault import contract as faults
from ackworth.fault.contract import Fault, Mend
from ackworth.model.errors import AckworthError, BadInput
from ackworth.run import traces

START = "start"
COMMAND_WITHIN = 120.0
BACK_WITHIN = 20.0  # how long one that was started again at the end may take until it answers


class CommandFailed(AckworthError):
    """A command of the user's did not do its work: the trial cannot tell."""


@dataclass(frozen=True, kw_only=True)
class Attachment:
    """Where the broker is, and what breaks it."""

    kind: str
    url: str = field(repr=False)
    shown: str  # the URL without what is secret in it
    version: str
    commands: Mapping[str, str]  # by fault; START: after a fault that ended it

    def address(self, settings: Mapping[str, Any], name: str) -> dict[str, Any]:
        """See `Attachable.attached`."""
        return _address(registry.find(self.kind), self.url, settings, name)


def attach(url: str, on: Sequence[str]) -> Attachment:
    """Reach the broker once. Raises BadInput if it is not there or does not let us in."""
    broker = registry.attachable(url)
    shown, commands = urls.show(url), dict(_command(text) for text in on)
    try:
        version = _guest(broker.name).version(_address(broker, url, registry.settle(broker, {}), "ackworth"))
    except drivers.ConnectionLost as error:
        raise BadInput(
            f"--attach {shown}: {error}: check the address, the credentials, and whether it has TLS"
        ) from error
    return Attachment(kind=broker.name, url=url, shown=shown, version=version, commands=commands)


def _address(broker: Broker, url: str, settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    assert isinstance(broker, Attachable)
    return broker.attached(url, settings, name)


def _guest(kind: str) -> drivers.Guest:
    driver = drivers.load(registry.find(kind).driver)
    assert isinstance(driver, drivers.Guest), "what can be attached to has a driver that can be a guest"
    return driver


def _command(text: str) -> tuple[str, str]:
    name, equals, command = text.partition("=")
    if not equals or not command.strip():
        raise BadInput(
            f"--on {text}: write it as FAULT=COMMAND, for example --on kill='ssh host pkill -9 redis-server'"
        )
    if name != START:
        faults.find(name)
    return name, command


@dataclass
class TheirNode:
    """The one node that is known of a broker that is not ours: nothing of it is on this machine."""

    name: str

    def start(self) -> None:
        """Its owner starts it."""

    def processes(self) -> list[int]:
        return []

    def look(self) -> None:
        """Whether it lives shows when it is spoken to."""

    def stop(self) -> None:
        """Its owner stops it."""


class Attached:
    """What `run.stage.Stage` is for nodes of our own."""

    own_disks = False
    device = None  # of another machine

    def __init__(
        self,
        attachment: Attachment,
        address: dict[str, Any],
        topics: Sequence[str],
        groups: Sequence[str],
        notes: list[str],
    ) -> None:
        """Topics and groups are the trial's, to be removed in the end; notes are where it says what could not be."""
        self._attachment, self.address = attachment, address
        self._topics, self._groups, self._notes = topics, groups, notes
        self.nodes: dict[str, Node] = {"attached": TheirNode("attached")}
        self._broken = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The broker stays, as whole as it was, and nothing of ours in it."""
        ours = f"topics {self._topics[0]} to {self._topics[-1]}"
        try:
            left = self._removed(Deadline(BACK_WITHIN if self._broken else 0))
        except CommandFailed as failed:
            left = f"the broker is left broken, and {ours} in it: {failed}"
        except drivers.ConnectionLost as lost:
            left = f"{ours} could not be removed: {lost}"
        if left is not None:
            self._notes.append(left)

    def _removed(self, deadline: Deadline) -> str | None:
        """See `Guest.remove`. One that is broken because the trial ended in the middle of a fault is mended before."""
        self._mend()
        while True:
            try:
                return _guest(self._attachment.kind).remove(self.address, self._topics, self._groups)
            except drivers.ConnectionLost:
                if not deadline.left():
                    raise
            time.sleep(0.05)

    def sync(self) -> None:
        """Its disks are not ours."""

    def look(self) -> None:
        """See `TheirNode.look`."""

    def joined(self) -> bool:
        """Whatever its nodes are to each other, what counts is that it answers."""
        return True

    def choose(self, name: str, chance: random.Random) -> list[Node]:
        return list(self.nodes.values())

    def repair(self, nodes: Sequence[Node]) -> str | None:
        return None

    def strike(self, fault: Fault, nodes: Sequence[Node]) -> Mend:
        self._broken = True
        self._run(fault.name)
        return self._mend

    def _mend(self) -> None:
        broken, self._broken = self._broken, False
        if broken and START in self._attachment.commands:
            self._run(START)

    def _run(self, name: str) -> None:
        """Until the command itself ends: a server that it leaves running has its output, and is not this run's."""
        command = self._attachment.commands[name]
        with tempfile.TemporaryFile() as output:
            try:
                done = subprocess.run(
                    command,
                    shell=True,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env={key: value for key, value in os.environ.items() if key != traces.VARIABLE},
                    timeout=COMMAND_WITHIN,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise CommandFailed(
                    f"the command for '{name}' did not end within {COMMAND_WITHIN:g} s: {command}"
                ) from None
            if done.returncode:
                output.seek(0)
                lines = output.read().decode(errors="replace").strip().splitlines()
                said = lines[-1].strip() if lines else "it said nothing"
                raise CommandFailed(f"the command for '{name}' ended with code {done.returncode}: {said}")

"""The workers of a trial: started, watched, asked to end, and never left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from ackworth.load.worker import ENVIRONMENT, FAILED, Order
from ackworth.model.errors import AckworthError, NotReady

# A worker finishes what is in flight before it ends.
_GRACE = 40.0
UP_WITHIN = 60.0
SILENT_FOR = 30.0  # a worker says again and again that it is there, unless the broker keeps it


class WorkerFailed(AckworthError):
    """A worker ended by itself and not well: the trial cannot tell."""


@dataclass(eq=False)
class Worker:
    name: str
    order: Order
    process: subprocess.Popen[str]
    log: Path
    heard_at: float = field(default_factory=time.monotonic)
    said: str | None = "it has only just been started"  # why it cannot do its work; None if it can
    up: bool = False  # it has loaded all it needs, and hears signals
    idle: bool = False  # its consumers asked for messages, and there were none

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    @property
    def trouble(self) -> str | None:
        """What keeps it from its work; one that stands still cannot say so itself."""
        if time.monotonic() - self.heard_at > SILENT_FOR:
            return f"{self.name} has said nothing for {SILENT_FOR:g} s"
        return self.said

    def processes(self) -> list[int]:
        """As a node has them: faults strike workers too."""
        return [self.process.pid] if self.running else []

    def start(self) -> None:
        """One that is down stays down: the conductor replaces it."""

    def stop(self) -> None:
        """Whatever it is at: one that does not end is killed, as an operator would."""
        self.process.terminate()
        try:
            self.process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def look(self) -> None:
        """Hear what it says. Raises WorkerFailed if it ended badly, whoever killed it."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            word, _, rest = line.strip().partition(" ")
            self.up, self.idle = True, word == "idle"
            self.heard_at, self.said = time.monotonic(), rest if word == "trouble" else None
        self.require_well()

    def require_well(self) -> None:
        code = self.process.poll()
        if code not in (None, 0):
            raise WorkerFailed(f"{self.name} ended with {_code(code)}: {self.last_words()}")

    def last_words(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"


class Crew:
    """Starts workers and keeps track of them."""

    def __init__(self, logs: Path, order: Order) -> None:
        self._logs = logs
        self._order = order  # what is the same for all
        self.workers: list[Worker] = []

    def prepare(self, seconds: float, meanwhile: Callable[[], None]) -> None:
        """Have the broker's topics made, as soon as it answers. Raises NotReady if it does not."""
        worker = self._start("prepare", replace(self._order, role="prepare", parent=os.getpid(), patience=seconds))
        try:
            while worker.running:
                meanwhile()
        finally:
            worker.process.kill()  # if it still waits for a broker that has failed
            worker.process.wait()
            self.forget(worker)
        if worker.process.returncode == FAILED:
            raise NotReady(f"the broker was not ready within {seconds:g} s: {worker.last_words()}")
        worker.require_well()

    def produce(self, entries: Sequence[list[int]], rate: float | None) -> None:
        """Start producers; they wait for `go`, so that a phase does not begin with the loading of modules."""
        for i, share in enumerate(shares(entries)):
            order = replace(self._order, role="produce", producers=share, rate=rate, parent=os.getpid())
            self._start(f"producers-{i}", order)
        deadline = time.monotonic() + UP_WITHIN
        while not all(worker.up for worker in self.role("produce")):
            self.look()
            if time.monotonic() > deadline:
                raise WorkerFailed(f"the producers were not up within {UP_WITHIN:g} s")
            time.sleep(0.001)

    def go(self, start: int) -> None:
        """Let the producers that wait begin; their schedule counts from start."""
        for worker in self.role("produce"):
            stdin = worker.process.stdin
            if stdin is not None and not stdin.closed:
                stdin.write(f"{start}\n")
                stdin.close()

    def consume(self, clients: Sequence[list[list[int]]]) -> None:
        """Start a worker for each client, which is a list of consumers."""
        for client in clients:
            order = replace(self._order, role="consume", consumers=client, parent=os.getpid())
            self._start(f"consumers-{client[0][0]}", order)

    def _start(self, name: str, order: Order) -> Worker:
        log = self._logs / f"{name}.log"
        with log.open("a") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", "ackworth.load.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                cwd="/",
                env={**os.environ, **ENVIRONMENT},
                start_new_session=True,
            )
        assert process.stdin is not None and process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        process.stdin.write(json.dumps(asdict(order)) + "\n")
        process.stdin.flush()
        worker = Worker(name, order, process, log)
        self.workers.append(worker)
        return worker

    def role(self, role: str) -> list[Worker]:
        return [worker for worker in self.workers if worker.order.role == role]

    def look(self) -> None:
        for worker in self.role("produce") + self.role("consume"):
            worker.look()

    def ask_anew(self, role: str) -> None:
        """What was said so far is heard, and counts no more: it may be older than what happened since."""
        for worker in self.role(role):
            worker.look()
            worker.idle = False

    def heard_after(self, moment: float, role: str) -> bool:
        """Whether all of them have said something since: one that stands still says what it last was no longer."""
        return all(worker.heard_at > moment for worker in self.role(role))

    def ask_to_end(self, role: str) -> None:
        """They begin nothing new, finish what is in flight, and end."""
        for worker in self.role(role):
            worker.process.send_signal(signal.SIGTERM)

    def finish(self, role: str, meanwhile: Callable[[], None]) -> None:
        """Ask the workers of a role to end, and wait until they have done so well. Raises WorkerFailed."""
        self.ask_to_end(role)
        deadline = time.monotonic() + _GRACE
        while late := [worker.name for worker in self.role(role) if worker.running]:
            if time.monotonic() > deadline:
                raise WorkerFailed(f"{late[0]} did not end within {_GRACE:g} s after it was asked to")
            meanwhile()
        for worker in self.role(role):
            worker.look()
            self.forget(worker)

    def kill(self) -> None:
        """End all of them at once, whatever they do."""
        for worker in self.workers:
            worker.process.kill()
        for worker in list(self.workers):
            worker.process.wait()
            self.forget(worker)

    def forget(self, worker: Worker) -> None:
        for pipe in (worker.process.stdin, worker.process.stdout):
            assert pipe is not None
            pipe.close()
        self.workers.remove(worker)


def shares(entries: Sequence[list[int]]) -> list[list[list[int]]]:
    """Entries dealt out to one worker a core, none of them idle."""
    count = min(len(entries), os.cpu_count() or 1)
    return [list(entries[i::count]) for i in range(count)]


def _code(code: int | None) -> str:
    return f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"code {code}"

"""A node that is a server process of ours: started to die with the run, watched, and ended with all that it started.

The server runs in a session of its own. Whatever it forks is found by that session or by its parents, so a
fault reaches all of it, also children whose parent is gone.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ackworth.broker.process import descendants, kill_all, of_session, states, wait_until
from ackworth.model.errors import AckworthError, BrokerFailed, Unavailable

_PR_SET_PDEATHSIG = 1
_LAST_LINES = 5
STOP_WITHIN = 60.0  # a server that writes its data on the way out may take its time


def find_program(name: str) -> str | None:
    """Where a program is, also where a user's PATH does not look."""
    return shutil.which(name) or shutil.which(name, path="/usr/local/sbin:/usr/sbin:/sbin")


def not_installed(broker: str, *needed: str | Path) -> str | None:
    """Which of the programs and files that a broker needs is not here, and what to do about it; None if all are."""
    for what in needed:
        if not (what.exists() if isinstance(what, Path) else find_program(what)):
            return f"{what} is not installed: run `ackworth brokers install {broker}`"
    return None


def dying_with_us() -> Callable[[], None]:
    """For `preexec_fn`: the kernel kills the child when this process ends, also if it ended already."""
    libc, parent = ctypes.CDLL(None), os.getpid()

    def die_with_parent() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return die_with_parent


class Server:
    """The node. What it prints goes to its log, start after start."""

    def __init__(
        self, name: str, command: Sequence[str | Path], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._command = [str(part) for part in command]
        self._log = log
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._log_begin = 0

    def start(self) -> None:
        self._launch(self._command)

    def _launch(self, command: Sequence[str]) -> None:
        self._bury()  # if a fault has ended it
        with self._log.open("ab") as output:
            self._log_begin = output.tell()
            try:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd="/",
                    env=self._environment,
                    start_new_session=True,
                    preexec_fn=dying_with_us(),
                )
            except OSError as error:
                raise Unavailable(f"{self._command[0]} cannot be started: {error.strerror}") from error

    def look(self) -> None:
        """Raises BrokerFailed if it has ended, with the last lines that it printed since its start."""
        if (code := self._ended()) is None:
            return
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"
        raise BrokerFailed(f"node {self.name} ended with {how}; its last lines: {self.last_lines() or 'none'}")

    def _ended(self) -> int | None:
        """Its exit code, or minus the signal that ended it. It is left unburied: so its pid is nobody else's yet."""
        if self._process is None:
            return None
        found = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def last_lines(self) -> str:
        with self._log.open("rb") as file:
            file.seek(self._log_begin)
            lines = file.read().decode(errors="replace").split("\n")
        told = [
            line.strip() for line in lines if line.strip() and not line[0].isspace()
        ]  # indented is how it came to it
        return " | ".join(told[-_LAST_LINES:])

    def processes(self) -> list[int]:
        if self._process is None:
            return []
        main = self._process.pid
        family = {main, *descendants(main), *of_session(main)}
        return sorted(pid for pid in family if not states(pid) <= set("ZX"))

    def stop(self) -> None:
        """SIGTERM to the server itself, as an init system does; whatever is left after a while is killed."""
        if self._process is None:
            return
        if self._ended() is None:
            os.kill(self._process.pid, signal.SIGTERM)
        with contextlib.suppress(AckworthError):
            wait_until(lambda: not self.processes(), STOP_WITHIN, f"stopping {self.name}")
        kill_all(self.processes)
        self._bury()

    def _bury(self) -> None:
        if self._process is not None:
            self._process.wait()
            self._process = None

"""Run the server's own processes, web and worker, until somebody says stop.

The processes write to this process's standard output and error themselves. Each is in a session
of its own, so that Ctrl-C, which a terminal sends to everything in front, reaches the supervisor
alone, and the others end in order.
"""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mesedi_server import tether

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_CHECK_S = 1.0
_KILL_S = 5.0


@dataclass(frozen=True, slots=True)
class Program:
    """A process to keep running."""

    name: str
    argv: Sequence[str | Path]
    env: Mapping[str, str] = field(default_factory=dict)
    """What is added to this process's environment."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the supervisor waits for what; all in seconds."""

    stop_s: float = 10.0
    """From the request to stop until a process is killed."""
    steady_s: float = 10.0
    """A process that ran this long before it ended counts as having run well."""
    first_delay_s: float = 0.5
    """Before a process that ended is started again; doubled each time it does not run well."""
    longest_delay_s: float = 30.0
    attempts: int = 5
    """Starts in a row that may go wrong before the supervisor gives up."""


class Supervisor:
    """Keeps programs running, and stops them together.

    Args:
        programs: what to run.
        check: called once a second; a text that it returns ends everything, as its reason.
        say: told what happens, a line each; by default to standard error.
        patience: how long to wait for what.
    """

    def __init__(
        self,
        programs: Sequence[Program],
        *,
        check: Callable[[], str | None] = lambda: None,
        say: Callable[[str], None] | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._patience = patience or Patience()
        self._children = [_Child(program, self._patience) for program in programs]
        self._check = check
        self._say = say or _to_standard_error

    def run(self) -> int:
        """Run until a signal to stop comes, or until running on makes no sense.

        Call it from the main thread: signals reach no other.

        Returns:
            0 if it was told to stop, 1 if a program would not run or `check` objected.
        """
        with _signals() as received:
            try:
                return self._watch(received)
            finally:
                self._stop(received)

    def _watch(self, received: Callable[[float], set[int]]) -> int:
        while True:
            for child in self._children:
                if news := child.keep_running():
                    self._say(news)
                if child.is_hopeless():
                    return 1
            if objection := self._check():
                self._say(objection)
                return 1
            pause_s = min([_CHECK_S, *(child.due_in() for child in self._children)])
            if received(pause_s).intersection(_STOP_SIGNALS):
                return 0

    def _stop(self, received: Callable[[float], set[int]]) -> None:
        """Ask every child to end, then kill what is left; a second Ctrl-C kills at once."""
        deadline = time.monotonic() + self._patience.stop_s
        for child in self._children:
            child.ask_to_stop()
        while any(child.is_running() for child in self._children):
            left_s = deadline - time.monotonic()
            if left_s <= 0 or signal.SIGINT in received(left_s):
                break
        for child in self._children:
            if child.is_running():
                self._say(f"{child.name} did not stop in time and is killed.")
                child.kill()


class _Child:
    """One program, the process that runs it, and how well that went."""

    def __init__(self, program: Program, patience: Patience) -> None:
        self.name = program.name
        self._program = program
        self._patience = patience
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._due_at = 0.0
        self._failures = 0

    def keep_running(self) -> str | None:
        """Start the program if it is due, note its end; returns what is worth telling."""
        process = self._process
        if process is None:
            if time.monotonic() >= self._due_at:
                self._start()
        elif not self.is_running():
            return self._note_end(process.returncode)
        return None

    def is_running(self) -> bool:
        if self._process and self._process.poll() is not None:
            self._process = None
        return self._process is not None

    def is_hopeless(self) -> bool:
        return self._failures >= self._patience.attempts

    def due_in(self) -> float:
        """Seconds until the program is to be started again."""
        return _CHECK_S if self._process else max(0.0, self._due_at - time.monotonic())

    def ask_to_stop(self) -> None:
        if self._process:
            self._process.terminate()

    def kill(self) -> None:
        """Kill the program and all that it started."""
        if self._process:
            tether.end(self._process, (tether.KILL_NOW, _KILL_S), (signal.SIGKILL, _KILL_S))
        self._process = None

    def _start(self) -> None:
        self._process = tether.start(
            self._program.argv,
            guarded=True,
            grace_s=self._patience.stop_s,
            env={**os.environ, **self._program.env},
        )
        self._started_at = time.monotonic()

    def _note_end(self, code: int) -> str:
        now = time.monotonic()
        how = f"ended with code {code}" if code >= 0 else f"was ended by signal {-code}"
        ran_well = now - self._started_at >= self._patience.steady_s
        self._failures = 1 if ran_well else self._failures + 1
        if self.is_hopeless():
            return f"{self.name} {how}, {self._failures} times in a row; giving up."
        delay_s = self._patience.first_delay_s * 2 ** (self._failures - 1)
        delay_s = min(delay_s, self._patience.longest_delay_s)
        self._due_at = now + delay_s
        return f"{self.name} {how}; starting it again in {delay_s:g} s."


def _to_standard_error(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


@contextmanager
def _signals() -> Iterator[Callable[[float], set[int]]]:
    """Give a function that waits for signals, at most some seconds, and returns their numbers.

    Signals are written to a pipe: one that arrives between two looks is not missed, and the end
    of a child wakes the wait.
    """
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)

    def received(timeout_s: float) -> set[int]:
        if not select.select([reader], [], [], timeout_s)[0]:
            return set()
        return set(os.read(reader, 1024))

    # What whoever started us had us ignore stays ignored, as nohup wants.
    heard = [one for one in _STOP_SIGNALS if signal.getsignal(one) != signal.SIG_IGN]
    previous_pipe = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    previous = {
        number: signal.signal(number, lambda *_: None) for number in (*heard, signal.SIGCHLD)
    }
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(previous_pipe)
        os.close(reader)
        os.close(writer)

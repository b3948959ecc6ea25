"""Start programs that end when their parent ends, even when it was killed.

`start` runs this very file as a script, which gives up root's rights, asks the kernel for a signal
at the parent's death, and turns into the program. `subprocess`'s `preexec_fn` could do the same,
but is not safe in a process with threads. A program that starts others is guarded instead: the
script stays between it and its parent, so that none of them is left behind; so is every program
where the kernel gives no such signal.

The script imports the standard library alone, because it runs with none of the environment's
packages on its path.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NoReturn

KILL_NOW = signal.SIGUSR1
"""What a guard takes as the order to kill its program with all that this started."""

_PR_SET_PDEATHSIG = 1
_LOOK_S = 0.5
_PASSED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)


def start(
    argv: Sequence[str | Path],
    *,
    guarded: bool = False,
    farewell: signal.Signals = signal.SIGTERM,
    grace_s: float = 10.0,
    user: tuple[int, int] | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    output: IO[bytes] | int | None = None,
    keep: Sequence[int] = (),
    umask: int = -1,
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, out of reach of the terminal's Ctrl-C.

    The kernel watches the thread that calls this: call it from one that lives as long as the
    program shall.

    Args:
        argv: the program and its arguments; a name without a slash is looked up on the path.
        guarded: whether the program starts others, that shall end with it.
        farewell: what the program is sent when this process is gone.
        grace_s: how long a guarded program may take to end after that.
        user: user and group id to change to; only root may.
        cwd: the program's working folder; it need not be reachable for `user`.
        env: the program's whole environment; by default this process's.
        output: where standard output and standard error go; by default where this process's go.
        keep: file descriptors that the program inherits.
        umask: the program's; -1 keeps this process's.
    """
    mode = "guard" if guarded or sys.platform != "linux" else "become"
    ids = ":".join(map(str, user or ()))
    words = [mode, str(os.getpid()), str(int(farewell)), ids, str(grace_s)]
    return subprocess.Popen(  # noqa: S603  # what to run is the caller's word
        [sys.executable, "-I", "-S", __file__, *words, *map(str, argv)],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=None if output is None else subprocess.STDOUT,
        pass_fds=keep,
        umask=umask,
        start_new_session=True,
    )


def end(process: subprocess.Popen[bytes], *farewells: tuple[signal.Signals, float]) -> None:
    """Send one signal after the other until the process ends.

    Args:
        process: what `start` returned.
        farewells: each a signal and how many seconds to wait for the end after it.
    """
    for number, patience_s in farewells:
        process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
            return


def become(parent: int, farewell: int, user: str, argv: Sequence[str]) -> NoReturn:
    """Turn this process into the program, tied to its parent where the kernel can."""
    # Python ignores SIGPIPE, and what is ignored stays so in the program.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if user:
        _give_up_rights(*map(int, user.split(":")))
    # After giving up rights, which clears the request.
    _ask_for_signal(farewell)
    if os.getppid() != parent:
        sys.exit("The parent is gone.")
    try:
        os.execvp(argv[0], list(argv))  # noqa: S606  # no shell is the point
    except OSError as error:
        sys.exit(f"{argv[0]} cannot be started: {error.strerror}")


class Guard:
    """A process that stands between a program and its parent.

    It passes signals on, ends when and as the program does, and kills then what the program
    left behind. When the parent is gone, it says farewell to the program and kills it after a
    while.

    Args:
        parent: the parent's process id.
        farewell: the signal that the program is sent when the parent is gone.
        grace_s: how long the program may take to end after that.
    """

    def __init__(self, parent: int, farewell: int, grace_s: float) -> None:
        self._parent = parent
        self._farewell = farewell
        self._grace_s = grace_s
        self._program = 0
        self._waiting: list[int] = []
        self._alone_since: float | None = None

    def run(self, user: str, argv: Sequence[str]) -> NoReturn:
        """Run the program."""
        heard = [number for number in _PASSED_ON if signal.getsignal(number) != signal.SIG_IGN]
        for number in heard:
            signal.signal(number, self._pass_on)
        signal.signal(KILL_NOW, self._kill)
        signal.signal(signal.SIGALRM, self._look)
        self._program = _fork(heard, self._farewell, user, argv)
        self._deliver()
        _ask_for_signal(signal.SIGALRM)
        signal.setitimer(signal.ITIMER_REAL, _LOOK_S, _LOOK_S)
        _, status = os.waitpid(self._program, 0)
        self._kill()
        _end_alike(os.waitstatus_to_exitcode(status))

    def _pass_on(self, number: int, _: object) -> None:
        self._waiting.append(number)
        self._deliver()

    def _deliver(self) -> None:
        while self._program and self._waiting:
            with suppress(ProcessLookupError):
                os.kill(self._program, self._waiting.pop(0))

    def _kill(self, *_: object) -> None:
        if self._program:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._program, signal.SIGKILL)

    def _look(self, *_: object) -> None:
        if os.getppid() == self._parent:
            return
        if self._alone_since is None:
            self._alone_since = time.monotonic()
            self._pass_on(self._farewell, None)
        elif time.monotonic() > self._alone_since + self._grace_s:
            self._kill()


def _fork(heard: Sequence[int], farewell: int, user: str, argv: Sequence[str]) -> int:
    guard = os.getpid()
    # Until the program hears them itself, signals wait: the guard's handlers would swallow them.
    signal.pthread_sigmask(signal.SIG_BLOCK, heard)
    program = os.fork()
    if program == 0:
        os.setsid()
        for number in heard:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, heard)
    if program == 0:
        become(guard, farewell, user, argv)
    return program


def _give_up_rights(uid: int, gid: int) -> None:
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def _ask_for_signal(number: int) -> None:
    """Ask for a signal at the parent's death."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def _end_alike(code: int) -> NoReturn:
    if code < 0:
        with suppress(OSError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


def main(mode: str, parent: str, farewell: str, user: str, grace_s: str, *argv: str) -> NoReturn:
    """Be the script; the words are those of `start`."""
    if mode == "guard":
        Guard(int(parent), int(farewell), float(grace_s)).run(user, argv)
    become(int(parent), int(farewell), user, argv)


if __name__ == "__main__":
    main(*sys.argv[1:])

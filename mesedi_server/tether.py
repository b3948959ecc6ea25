"""Start programs that end when their parent ends, even when it was killed.

`start` runs this very file as a script, which gives up root's rights, asks the kernel for a signal
at the parent's death, and turns into the program. `subprocess`'s `preexec_fn` could do the same,
but is not safe in a process with threads. The script imports the standard library alone, because
it runs with none of the environment's packages on its path.
"""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NoReturn

_PR_SET_PDEATHSIG = 1
_LOOK_S = 0.5


def start(
    argv: Sequence[str | Path],
    *,
    farewell: signal.Signals = signal.SIGTERM,
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
        farewell: what the program is sent when this process is gone.
        user: user and group id to change to; only root may.
        cwd: the program's working folder; it need not be reachable for `user`.
        env: the program's whole environment; by default this process's.
        output: where standard output and standard error go; by default where this process's go.
        keep: file descriptors that the program inherits.
        umask: the program's; -1 keeps this process's.
    """
    words = [str(os.getpid()), str(int(farewell)), ":".join(map(str, user or ()))]
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
    """Turn this process into the program, tied to its parent."""
    # Python ignores SIGPIPE, and what is ignored stays so in the program.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if user:
        _give_up_rights(*map(int, user.split(":")))
    try:
        if sys.platform == "linux":
            _ask_for_farewell(parent, farewell)
            os.execvp(argv[0], list(argv))  # noqa: S606  # no shell is the point
        sys.exit(watch(parent, farewell, argv))
    except OSError as error:
        sys.exit(f"{argv[0]} cannot be started: {error.strerror}")


def watch(parent: int, farewell: int, argv: Sequence[str]) -> int:
    """Run the program and look for the parent twice a second, where no kernel tells.

    Returns the program's exit code, or 128 and the number of the signal that ended it.
    """
    program = subprocess.Popen(argv, close_fds=False)  # noqa: S603  # as above
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, lambda received, _: program.send_signal(received))
    while True:
        try:
            code = program.wait(timeout=_LOOK_S)
        except subprocess.TimeoutExpired:
            if os.getppid() != parent:
                program.send_signal(farewell)
                parent = os.getppid()
        else:
            return code if code >= 0 else 128 - code


def _give_up_rights(uid: int, gid: int) -> None:
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def _ask_for_farewell(parent: int, farewell: int) -> None:
    # After setuid, which clears the request.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, farewell)
    if os.getppid() != parent:
        sys.exit("The parent is gone.")


if __name__ == "__main__":
    become(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])

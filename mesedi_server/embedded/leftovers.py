"""Database processes that outlived the one that started them.

The kernel tells a server when its parent dies, so usually there are none, or they are about to
end. A server whose parent was killed a moment ago still holds the cluster, though, and where no
kernel tells it lives on.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from mesedi_server.embedded.errors import ServerFailedError

_PAUSE_S = 0.02
# Fast shutdown, immediate shutdown (the log is replayed at the next start), the end.
FAREWELLS = ((signal.SIGINT, 30.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))
_A_SERVER = re.compile("(.*/)?postgres -D ")
_ITS_CHILD = re.compile(r"postgres: ")


def stop_postgres(marker: str) -> None:
    """End every PostgreSQL process with that word in its command line.

    The server first and gently. Children that lost their server get what it would send them in
    an emergency.

    Raises:
        ServerFailedError: some are still there.
    """
    for number, patience_s in FAREWELLS:
        servers, children = _alive(marker)
        if not servers and not children:
            return
        for pid in servers or children:
            with suppress(ProcessLookupError):
                os.kill(pid, number if servers else max(number, signal.SIGQUIT))
        _await_end(marker, patience_s)
    servers, children = _alive(marker)
    if servers or children:
        pids = ", ".join(map(str, servers + children))
        raise ServerFailedError(
            f"PostgreSQL of an earlier start does not end (process {pids}). Stop it with "
            f"`kill -QUIT`, then start again."
        )


def _await_end(marker: str, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    while any(_alive(marker)) and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)


def _alive(marker: str) -> tuple[list[int], list[int]]:
    """Return the ids of servers and of their children."""
    found = [(pid, line) for pid, line in _processes() if marker in line]
    servers = [pid for pid, line in found if _A_SERVER.match(line)]
    children = [pid for pid, line in found if _ITS_CHILD.match(line)]
    return servers, children


def _processes() -> Iterator[tuple[int, str]]:
    """Give the id and the command line of every process, without `ps` where /proc tells."""
    if sys.platform == "linux":
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                yield int(folder.name), os.fsdecode(line)
        return
    listing = ["/bin/ps", "-axww", "-o", "pid=", "-o", "command="]
    table = subprocess.run(  # noqa: S603  # our own words
        listing, capture_output=True, text=True, check=True
    ).stdout
    for row in table.splitlines():
        pid, _, line = row.strip().partition(" ")
        yield int(pid), line.strip()

"""What an embedded server wrote, kept in a file."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from mesedi_server.embedded.errors import ServerFailedError

_LARGEST = 1_000_000
_LINES = 12


class ServerLog:
    """The log file of one server."""

    def __init__(self, server: str, path: Path) -> None:
        self._server = server
        self._path = path
        self._start = 0

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the file for one more start; a large one becomes `.log.1` first."""
        if self._path.exists() and self._path.stat().st_size > _LARGEST:
            self._path.replace(f"{self._path}.1")
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
        with os.fdopen(os.open(self._path, flags, 0o600), "ab") as file:
            self._start = file.tell()
            yield file

    def failure(self, trouble: str, way_out: str = "") -> ServerFailedError:
        """Explain a failure with the last lines since the latest start."""
        with self._path.open("rb") as file:
            file.seek(self._start)
            lines = file.read().decode(errors="replace").splitlines()[-_LINES:]
        said = "".join(f"\n    {line}" for line in lines)
        return ServerFailedError(
            f"{self._server} {trouble}.{way_out and ' '}{way_out} "
            f"Its log, {self._path}, ends with:{said or ' nothing.'}"
        )

"""A folder that keeps what could not be sent in time, until a later process sends it.

One file an exit, one line a piece. A process that sends a file holds its lock meanwhile, which
its death gives back; the file goes away when the server has acknowledged the last piece. A crash
in between sends pieces twice, which changes nothing: the server stores an id once.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from mesedi._fitting import as_json
from mesedi._pieces import SavedEvent, SavedReport
from mesedi.errors import ConfigurationError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_EVENTS = "/events"
_PRIVATE = 0o600  # the lines hold what your users asked and were told

Saved = SavedEvent | SavedReport


class Spool:
    """The files of one destination (server and key) in a folder that others may share."""

    def __init__(self, folder: Path, base_url: str, api_key: str, max_bytes: int) -> None:
        if fcntl is None:
            raise ConfigurationError("spool needs a system with POSIX file locks")
        self._folder = folder
        self._max_bytes = max_bytes
        told = f"{base_url}\n{api_key}".encode()
        self._destination = hashlib.sha256(told).hexdigest()[:16]

    def prepare(self) -> None:
        """Make the folder.

        Raises:
            ConfigurationError: it cannot be made or written to.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(f"spool: {error.strerror}: {self._folder}") from error
        if not os.access(self._folder, os.W_OK | os.X_OK):
            raise ConfigurationError(f"spool: cannot write to {self._folder}")

    def files(self) -> list[Path]:
        """List this destination's files, oldest first."""
        return sorted(self._folder.glob(f"{self._destination}-*.jsonl"))

    def save(self, pieces: Iterable[Saved]) -> int:
        """Write `pieces` into a new file; answers how many there was room for.

        Raises:
            OSError: nothing could be written.
        """
        moment = f"{time.time_ns():020d}-{os.getpid()}-{os.urandom(4).hex()}"
        path = self._folder / f"{self._destination}-{moment}.jsonl"
        part = path.with_suffix(".part")
        count = 0
        try:
            with os.fdopen(
                os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE), "wb"
            ) as to:
                for line in self._fitting(pieces):
                    to.write(line)
                    count += 1
            part.replace(path)  # others see the file when it is whole
        except OSError:
            part.unlink(missing_ok=True)
            raise
        return count

    def _fitting(self, pieces: Iterable[Saved]) -> Iterator[bytes]:
        room = self._max_bytes - sum(_size_of(path) for path in self._folder.iterdir())
        for piece in pieces:
            line = _line(piece)
            room -= len(line)
            if room < 0:
                return
            yield line


class Leftovers:
    """What earlier processes saved, taken up file by file. The sender's thread alone uses it."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._file: TextIO | None = None
        self._path = Path()
        self._out = 0
        self.remain = bool(spool.files())
        """There may be more to take."""
        self.unread_events = 0
        """Events of the file at work that were not taken yet."""

    def take(self, most: int) -> list[Saved]:
        """Take the next pieces; none while those taken before are on their way."""
        while self.remain:
            file = self._file or self._claim_next()
            if file is None:
                break
            pieces = self._read(file, most)
            self._out += len(pieces)
            if self._out:
                return pieces
            # The whole file is read and settled.
            self._path.unlink(missing_ok=True)
            file.close()  # after the file is gone, so that nobody claims it in between
            self._file = None
        return []

    def settled(self, count: int) -> None:
        """Learn that `count` pieces need no more sending."""
        self._out -= count

    def let_go(self) -> None:
        """Give the file at work back; what is left of it waits for the next process."""
        self.remain = False
        self.unread_events = 0
        if self._file is not None:
            self._file.close()

    def _claim_next(self) -> TextIO | None:
        for path in self._spool.files():
            file = _locked(path)
            if file is not None:
                self._file, self._path = file, path
                self.unread_events = sum(_is_event_line(line) for line in file)
                file.seek(0)
                return file
        self.remain = False
        return None

    def _read(self, file: TextIO, most: int) -> list[Saved]:
        """Read the next pieces; none at the end of the file, and only there."""
        pieces: list[Saved] = []
        while len(pieces) < most and (line := file.readline()):
            self.unread_events -= _is_event_line(line)
            piece = _piece(line)
            if piece is not None:
                pieces.append(piece)
        return pieces


def _locked(path: Path) -> TextIO | None:
    """Open and lock a file; None when another process has it, or has had it."""
    try:
        file = path.open(encoding="utf-8", errors="replace")
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.stat().st_ino == os.fstat(file.fileno()).st_ino:
            return file
    except OSError:
        pass
    file.close()
    return None


def _line(piece: Saved) -> bytes:
    if isinstance(piece, SavedEvent):
        where = ["POST", _EVENTS, piece.execution_id]
    else:
        where = [piece.method, piece.path, piece.execution_id]
    # JSON never holds a bare tab or line end; the body goes through as it is.
    return f"{as_json(where)}\t{piece.text}\n".encode("utf-8", "replace")


def _piece(line: str) -> Saved | None:
    where, _, text = line.partition("\t")
    try:
        method, path, execution_id = json.loads(where)
    except ValueError:
        return None
    if not text.endswith("}\n"):  # the file of a machine that went down while it was written
        return None
    if path == _EVENTS:
        return SavedEvent(execution_id, text[:-1])
    return SavedReport(execution_id, method, path, text[:-1])


def _is_event_line(line: str) -> bool:
    return line.startswith(f'["POST","{_EVENTS}"')


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0

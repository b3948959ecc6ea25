"""The data folder: who holds it, where its servers listen, and what lies where.

    DATA/servers/lock           held by a lock as long as a process runs the servers; says where
    DATA/servers/postgres/      the database cluster, with its socket
    DATA/servers/valkey/        the broker's append-only file, with its socket
    DATA/servers/*.log

`servers` is closed to everybody else: the account that root hands the servers to may be shared
with other services.
"""

import fcntl
import json
import os
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mesedi_server.embedded.errors import FolderInUseError, FolderUnusableError

# macOS takes 104 bytes with the final zero, Linux 108.
_LONGEST_SOCKET = 103
_LONGEST_NAME = len("/postgres/.s.PGSQL.5432")
# A command that uses the database for a moment holds the folder without saying where it listens.
_PATIENCE_S = 15.0
# A look at the lock by another process must not read as a second server.
_SECOND_LOOK_S = 0.5
_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the embedded servers listen."""

    database_url: str
    """For SQLAlchemy and psycopg 3: `postgresql+psycopg:///…`."""
    broker_url: str
    """For Celery: `redis+socket:///…`."""


class DataFolder:
    """One data folder, held by at most one process."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.servers = self.path / "servers"
        self.postgres = self.servers / "postgres"
        self.valkey = self.servers / "valkey"
        self._lock_path = self.servers / "lock"
        self._lock: int | None = None
        self._shortcut: Path | None = None

    def claim(self) -> None:
        """Make the folder if need be, and hold it until `release`.

        Raises:
            FolderInUseError: another process runs the servers there.
            FolderUnusableError: the folder cannot be made or written.
        """
        try:
            self._make()
            self._lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise unusable(self.path, error) from error
        try:
            self._await_lock(self._lock)
            _remove_shortcut(self._record().get("shortcut"))
            self._write(None)
        except BaseException:
            self._close()
            raise

    def publish(self, addresses: Addresses) -> None:
        """Tell other processes where the servers listen."""
        self._write(addresses)

    def release(self) -> None:
        """Let go of the folder. Nothing happens if it was not held."""
        if self._lock is not None:
            os.ftruncate(self._lock, 0)
            _remove_shortcut(self._shortcut)
            self._close()

    def addresses(self) -> Addresses | None:
        """Say where the servers listen that another process runs there, or None."""
        try:
            lock = os.open(self._lock_path, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unusable(self.path, error) from error
        try:
            return None if _lock(lock, fcntl.LOCK_SH) else self._published()
        finally:
            os.close(lock)

    def reachable(self, place: Path) -> Path:
        """Return a path to a folder of the held servers that is short enough for its socket."""
        if len(os.fsencode(self.servers)) + _LONGEST_NAME <= _LONGEST_SOCKET:
            return place
        if self._shortcut is None:
            self._shortcut = Path(tempfile.mkdtemp(prefix="mesedi-", dir=_short_folder()))
            (self._shortcut / "s").symlink_to(self.servers)
            self._write(None)
        return self._shortcut / "s" / place.relative_to(self.servers)

    def _make(self) -> None:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.servers.mkdir(mode=0o700, exist_ok=True)
        if self.servers.stat().st_mode & 0o077:
            self.servers.chmod(0o700)

    def _await_lock(self, lock: int) -> None:
        start = time.monotonic()
        while not _lock(lock, fcntl.LOCK_EX):
            patience = _SECOND_LOOK_S if self._published() else _PATIENCE_S
            if time.monotonic() > start + patience:
                raise FolderInUseError(
                    f"{self.path} is in use by process {self._record().get('pid', '(unknown)')}. "
                    "Stop that one, or choose another folder with --data DIR."
                )
            time.sleep(_PAUSE_S)

    def _published(self) -> Addresses | None:
        addresses = self._record().get("addresses")
        return Addresses(**addresses) if addresses else None

    def _record(self) -> dict[str, Any]:
        try:
            record = json.loads(self._lock_path.read_bytes())
        except (OSError, ValueError):
            # Empty, or just being written.
            return {}
        return record if isinstance(record, dict) else {}

    def _write(self, addresses: Addresses | None) -> None:
        assert self._lock is not None  # noqa: S101  # only called while the folder is held
        record = {
            "pid": os.getpid(),
            "addresses": addresses and asdict(addresses),
            "shortcut": self._shortcut and str(self._shortcut),
        }
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, json.dumps(record).encode(), 0)

    def _close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
        self._lock = self._shortcut = None


def unusable(folder: Path, error: OSError) -> FolderUnusableError:
    """Explain that a data folder cannot be used."""
    reason = error.strerror or str(error)
    return FolderUnusableError(
        f"The data folder {folder} cannot be used: {reason} ({error.filename or folder}). Make it "
        "writable for the user who starts the server, or choose another with --data DIR."
    )


def _lock(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _short_folder() -> str | None:
    return "/tmp" if os.access("/tmp", os.W_OK) else None  # noqa: S108  # mkdtemp makes it private


def _remove_shortcut(shortcut: str | Path | None) -> None:
    if shortcut:
        with suppress(OSError):
            (Path(shortcut) / "s").unlink()
            Path(shortcut).rmdir()

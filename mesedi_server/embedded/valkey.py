"""One Valkey server, reached through a socket in its own folder."""

import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from mesedi_server import tether
from mesedi_server.embedded import binaries
from mesedi_server.embedded.account import server_account
from mesedi_server.embedded.errors import ServerFailedError
from mesedi_server.embedded.folder import DataFolder
from mesedi_server.embedded.log import ServerLog

_SOCKET = "socket"
_START_S = 60.0
_STOP_S = 10.0
_FAREWELLS = ((signal.SIGTERM, _STOP_S), (signal.SIGKILL, _STOP_S))
_ANSWER_S = 5.0
_PAUSE_S = 0.005
_OPTIONS = {
    "port": "0",
    "unixsocket": _SOCKET,
    "unixsocketperm": "700",
    "daemonize": "no",
    "loglevel": "warning",
    "save": "",
    "appendfsync": "everysec",
}


class Valkey:
    """The broker of a data folder."""

    def __init__(self, folder: DataFolder, *, durable: bool = True) -> None:
        self._folder = folder
        self._home = folder.valkey
        self._durable = durable
        self.log = ServerLog("Valkey", folder.servers / "valkey.log")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def broker_url(self) -> str:
        """Where Celery finds the broker."""
        return f"redis+socket://{quote(str(self._socket))}"

    def launch(self) -> None:
        """Start the server.

        Raises:
            EmbeddedError: it cannot run; the message says why.
        """
        account = server_account(self._folder.postgres)
        program, _ = binaries.runnable(binaries.valkey(), account)
        self._home.mkdir(mode=0o700, exist_ok=True)
        if account:
            account.own(self._home)
        self._stop_leftover()
        kept = {"appendonly": "yes" if self._durable else "no"}
        options = [
            word for name, value in (_OPTIONS | kept).items() for word in (f"--{name}", value)
        ]
        with self.log.open() as output:
            self._process = tether.start(
                [program.path, *options],
                user=account,
                # Its own folder by a relative path: those above may be closed to the account.
                cwd=self._home,
                output=output,
                umask=0o077,
            )

    def wait(self) -> None:
        """Return when the server answers.

        Raises:
            ServerFailedError: it ended, or did not answer in time.
        """
        deadline = time.monotonic() + _START_S
        while self._ask(b"PING") != b"+PONG\r\n":
            if self.ended() or time.monotonic() > deadline:
                raise self.log.failure(
                    "does not start",
                    f"It holds nothing that cannot be lost: {self._home} may be removed.",
                )
            time.sleep(_PAUSE_S)

    def ended(self) -> bool:
        """Say whether the server ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def stop(self) -> None:
        """Stop the server; nothing happens if it does not run."""
        if self._process is not None:
            tether.end(self._process, *_FAREWELLS)
            self._process = None

    @property
    def _socket(self) -> Path:
        return self._folder.reachable(self._home) / _SOCKET

    def _stop_leftover(self) -> None:
        """End a server that outlived its parent; only it can be listening there."""
        deadline = time.monotonic() + _STOP_S
        while self._ask(b"SHUTDOWN") is not None:
            if time.monotonic() > deadline:
                raise ServerFailedError(
                    f"A Valkey of an earlier start still listens at {self._socket}. Stop it, "
                    "then start again."
                )
            time.sleep(_PAUSE_S)
        (self._home / _SOCKET).unlink(missing_ok=True)

    def _ask(self, command: bytes) -> bytes | None:
        """Return the answer to a command: empty if none came, None if nobody listens."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_ANSWER_S)
            try:
                connection.connect(str(self._socket))
            except (FileNotFoundError, ConnectionRefusedError):
                return None
            with suppress(OSError):
                connection.sendall(command + b"\r\n")
                return connection.recv(1024)
        return b""

"""Listens for the server's halt while an execution with a budget goes on (wire.md 1.7).

The SDK never waits for it: without a stream the execution keeps to its own limits.
"""

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator

from mesedi._courier import open_connection
from mesedi._guard import harmless
from mesedi._pieces import execution_path
from mesedi._settings import Settings

_CONNECT_S = 5.0
_SILENCE_S = 60.0  # the server says that it is there every 15 s
_AGAIN_S = 5.0
_MAX_STREAMS = 4  # the server keeps a thread for each
_OPEN = 200
_GONE = {400, 401, 403, 404}
_MAX_LINE = 64 * 1024

_slots = threading.BoundedSemaphore(_MAX_STREAMS)


class HaltStream:
    """One execution's stream, on a thread of its own until `close`."""

    def __init__(self, settings: Settings, execution_id: str, halt: Callable[[str], None]) -> None:
        self._settings = settings
        self._path = f"{execution_path(execution_id)}/halt-stream"
        self._halt = halt
        self._over = threading.Event()
        self._socket: socket.socket | None = None

    @harmless
    def open(self) -> None:
        """Begin to listen, if there is a slot left."""
        if not _slots.acquire(blocking=False):
            return
        try:
            threading.Thread(target=self._run, name="mesedi-halt", daemon=True).start()
        except RuntimeError:  # no threads left, or the interpreter is going down
            _slots.release()

    def close(self) -> None:
        """Stop listening; the thread ends by itself."""
        self._over.set()
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        try:
            while not self._over.is_set() and self._listen():
                self._over.wait(_AGAIN_S)
        finally:
            _slots.release()

    def _listen(self) -> bool:
        """Listen once; answers whether it makes sense to try again."""
        connection = open_connection(self._settings.address, _CONNECT_S)
        if connection is None:
            return True
        try:
            with contextlib.closing(connection):
                return self._read(connection)
        except (OSError, http.client.HTTPException, ValueError):
            return True
        finally:
            self._socket = None

    def _read(self, connection: http.client.HTTPConnection) -> bool:
        sock = connection.sock
        sock.settimeout(_SILENCE_S)
        self._socket = sock
        if self._over.is_set():  # `close` came before there was anything to shut
            return False
        path = self._settings.address.path.rstrip("/") + self._path
        headers = {"Accept": "text/event-stream", **self._settings.headers}
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        if response.status != _OPEN:
            return response.status not in _GONE
        for reason in _halts(response):
            self._halt(reason)
            return False
        return True


def _halts(response: http.client.HTTPResponse) -> Iterator[str]:
    """Read the stream's frames; yields the reason of each halt."""
    kind, data = "", []
    while line := response.readline(_MAX_LINE):
        words = line.decode("utf-8", "replace").rstrip("\r\n")
        if words.startswith("event:"):
            kind = words[6:].strip()
        elif words.startswith("data:"):
            data.append(words[5:].removeprefix(" "))
        elif not words:
            if kind == "halt":
                yield _reason("\n".join(data))
            kind, data = "", []


def _reason(data: str) -> str:
    try:
        told = json.loads(data)
    except ValueError:
        told = None
    reason = told.get("reason") if isinstance(told, dict) else None
    return reason if isinstance(reason, str) and reason else "remote halt"

"""Kept-alive HTTP connections. The sender's thread alone uses them."""

import email.utils
import encodings.idna  # noqa: F401 - see below
import gzip
import http.client
import json
import os
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple
from urllib.parse import SplitResult

from mesedi._plain import Json
from mesedi._settings import Settings

# `socket` imports the codec of host names on first use. Were that the sender's thread, a fork
# in that moment would leave the child with half a module, for ever without a connection.

_COMPRESS_FROM = 1024  # the size from which the published SDK compresses; below it costs more
_MAX_ANSWER_BYTES = 1024 * 1024
MOST_AT_ONCE = 8  # connections that a process may have; more than one only while much waits


class Answer(NamedTuple):
    """What came back; status 0 when nothing did."""

    status: int
    content: bytes = b""
    retry_after_s: float | None = None

    def json(self) -> Json:
        """Read the content; None when it is no JSON."""
        try:
            return json.loads(self.content)  # type: ignore[no-any-return]
        except (ValueError, RecursionError):
            return None


UNREACHABLE = Answer(0, b"unreachable")
SILENT = Answer(0, b"no answer")


class Request(NamedTuple):
    """What to carry where."""

    method: str
    path: str
    body: bytes


class _Out(NamedTuple):
    """A request on its way; `failure` is what became of it already."""

    request: Request
    at: float
    kept: bool
    failure: Answer | None


class Courier:
    """Carries one request at a time and always comes back with an `Answer`."""

    def __init__(self, settings: Settings) -> None:
        self._address = settings.address
        self._timeout_s = settings.timeout_s
        self._connection: http.client.HTTPConnection | None = None
        self.deadline: float | None = None
        """A monotonic time after which no request may still run."""
        self._timed_out = False
        self._encoding, self._compress = _best_compression()
        self._headers = {**settings.headers, "Content-Type": "application/json"}

    def send(self, request: Request) -> Answer:
        """Send one request and wait for its answer."""
        return self.finish(self.begin(request))

    def begin(self, request: Request) -> _Out:
        """Send a request whose answer is fetched later, by `finish`."""
        kept = self._connection is not None
        return _Out(request, time.monotonic(), kept, self._put(request))

    def finish(self, out: _Out) -> Answer:
        """Wait for an answer; a kept connection that the server had closed is tried once more."""
        answer = out.failure or self._take(out.at)
        if answer is SILENT and out.kept and not self._timed_out:
            answer = self._try(out.request)
        if answer.status == http.client.UNSUPPORTED_MEDIA_TYPE and self._encoding:
            self._encoding = ""
            answer = self._try(out.request)
        return answer

    def hang_up(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def disown(self) -> None:
        """Close a forked child's copy of the connection without a word to the server."""
        sock = self._connection and self._connection.sock
        if sock:
            os.close(sock.detach())

    def _try(self, request: Request) -> Answer:
        begun_at = time.monotonic()
        return self._put(request) or self._take(begun_at)

    def _put(self, request: Request) -> Answer | None:
        self._timed_out = False
        connection = self._connected()
        if connection is None:
            return UNREACHABLE
        try:
            headers, content = self._packed(request.body)
            path = self._address.path.rstrip("/") + request.path
            connection.request(request.method, path, content, headers)
        except (OSError, http.client.HTTPException) as error:
            return self._failed(error)
        return None

    def _take(self, begun_at: float) -> Answer:
        connection = self._connection
        if connection is None or connection.sock is None:
            return SILENT
        try:
            connection.sock.settimeout(self._time_left(begun_at))
            return self._read(connection.getresponse())
        except (OSError, http.client.HTTPException) as error:
            return self._failed(error)

    def _failed(self, error: Exception) -> Answer:
        self._timed_out = isinstance(error, TimeoutError)
        self.hang_up()
        return SILENT

    def _connected(self) -> http.client.HTTPConnection | None:
        timeout_s = self._time_left(time.monotonic())
        if self._connection is not None and self._connection.sock is not None:
            self._connection.sock.settimeout(timeout_s)
            return self._connection
        self._connection = open_connection(self._address, timeout_s)
        return self._connection

    def _time_left(self, begun_at: float) -> float:
        end = begun_at + self._timeout_s
        end = end if self.deadline is None else min(end, self.deadline)
        return max(0.05, end - time.monotonic())

    def _packed(self, body: bytes) -> tuple[dict[str, str], bytes]:
        if len(body) < _COMPRESS_FROM or not self._encoding:
            return self._headers, body
        return {**self._headers, "Content-Encoding": self._encoding}, self._compress(body)

    def _read(self, response: http.client.HTTPResponse) -> Answer:
        content = response.read(_MAX_ANSWER_BYTES)
        if response.will_close or not response.isclosed():
            self.hang_up()
        return Answer(response.status, content, _retry_after(response.headers.get("Retry-After")))


class Couriers:
    """A few couriers, so that one thread can wait for several answers at once."""

    def __init__(self, settings: Settings) -> None:
        self._all = [Courier(settings) for _ in range(MOST_AT_ONCE)]

    def send(self, request: Request) -> Answer:
        """Send one request and wait for its answer."""
        return self._all[0].send(request)

    def send_all(self, requests: Sequence[Request]) -> list[Answer | None]:
        """Send up to `MOST_AT_ONCE` requests, then wait for all their answers.

        None stands for what was not sent, since the server had not been found a moment before.
        """
        outs: list[tuple[Courier, _Out]] = []
        for courier, request in zip(self._all, requests, strict=False):
            outs.append((courier, courier.begin(request)))
            if outs[-1][1].failure is UNREACHABLE:
                break
        answers: list[Answer | None] = [courier.finish(out) for courier, out in outs]
        return answers + [None] * (len(requests) - len(answers))

    def stop_at(self, deadline: float) -> None:
        """Let no request run beyond a monotonic time."""
        for courier in self._all:
            courier.deadline = deadline

    def hang_up(self) -> None:
        """Close all connections."""
        for courier in self._all:
            courier.hang_up()

    def disown(self) -> None:
        """Close a forked child's copies of the connections without a word to the server."""
        for courier in self._all:
            courier.disown()


def open_connection(address: SplitResult, timeout_s: float) -> http.client.HTTPConnection | None:
    """Connect; None when nobody is there."""
    secure = address.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = kind(address.hostname or "", address.port, timeout=timeout_s)
    try:
        connection.connect()
    except (OSError, ValueError):
        connection.close()
        return None
    except BaseException:  # the thread is being killed
        connection.close()
        raise
    return connection


def _best_compression() -> tuple[str, Callable[[bytes], bytes]]:
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore] # noqa: PLC0415
    except ImportError:
        return "gzip", lambda body: gzip.compress(body, 1, mtime=0)
    return "zstd", zstd.compress


def _retry_after(value: str | None) -> float | None:
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return seconds if 0 <= seconds < float("inf") else None

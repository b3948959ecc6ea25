"""Between Granian and the application: a request takes a thread when its body is here, not before.

A thread that reads a body itself waits for its sender, and nothing could end that wait: a few clients that announce a
body and send nothing would hold all threads. So bodies come in on the event loop, where a slow one costs a little
memory, and the application, which stays plain WSGI, finds them complete.
"""

import asyncio
import io
import logging
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from granian.rsgi import HTTPProtocol, ProtocolError, Scope  # type: ignore[attr-defined]
from werkzeug.datastructures import Headers

from mesedi_server import app
from mesedi_server.api.bodies import MAX_BYTES
from mesedi_server.config import from_environment

GRACE_S = 10.0
"""How long a body may take at any rate."""
LEAST_BYTES_A_SECOND = 64 * 1024
"""What a body must bring on average after that; a slower one is given up."""
MAX_HELD_BYTES = 256 * 1024 * 1024
"""Bytes of all bodies that a process holds at once; one on top of that is put off."""
UNCOUNTED_BYTES = 64 * 1024
"""What every body may have without counting as held: who holds all there is keeps only large ones out."""
READ_AWAY_BYTES = 64 * 1024 * 1024
"""What is read of a body that is too large: who still sends when the connection closes can't read the answer."""

Environ: TypeAlias = dict[str, Any]

logger = logging.getLogger(__name__)


class _PutOffError(Exception):
    """A body that this process does not wait for; its sender may come again."""


class Gateway:
    """Answers Granian's requests by a WSGI application, in a number of threads.

    Args:
        wsgi: the application.
        threads: how many of its requests run at once.
    """

    def __init__(self, wsgi: Any, threads: int) -> None:
        self._wsgi = wsgi
        self._threads = ThreadPoolExecutor(threads, "web")
        self._held = 0

    async def __rsgi__(self, scope: Scope, protocol: HTTPProtocol) -> None:
        """Answer one request."""
        body = _Body(self)
        try:
            await body.read(scope, protocol)
            loop = asyncio.get_running_loop()
            answered = loop.create_future()
            self._threads.submit(self._run, scope, protocol, body, answered)
            await answered
        except _PutOffError as error:
            _put_off(protocol, str(error))
        finally:
            self.hold(-body.held)

    def hold(self, size: int) -> None:
        """Count bytes of bodies in, or out.

        Raises:
            _PutOffError: there is no room for them.
        """
        if size > 0 and self._held + size > MAX_HELD_BYTES:
            raise _PutOffError("too many large bodies at once")
        self._held += size

    def _run(
        self, scope: Scope, protocol: HTTPProtocol, body: "_Body", answered: asyncio.Future[None]
    ) -> None:
        """Run the application, in one of its threads."""
        loop = answered.get_loop()
        try:
            self._answer(scope, protocol, body, loop)
        except Exception:
            logger.exception("no answer to %s %s", scope.method, scope.path)
        finally:
            loop.call_soon_threadsafe(_note, answered)

    def _answer(
        self, scope: Scope, protocol: HTTPProtocol, body: "_Body", loop: asyncio.AbstractEventLoop
    ) -> None:
        status, headers = 500, Headers()

        def start(line: str, fields: list[tuple[str, str]], _error: Any = None) -> None:
            nonlocal status, headers
            status, headers = int(line[:3]), Headers(fields)

        parts = self._wsgi(_environ(scope, body), start)
        try:
            if "Content-Length" in headers:
                protocol.response_bytes(status, headers.to_wsgi_list(), b"".join(parts))
            else:
                _stream(protocol.response_stream(status, headers.to_wsgi_list()), parts, loop)
        finally:
            parts.close()


class _Body:
    """A request's body, as far as it is here."""

    def __init__(self, gateway: Gateway) -> None:
        self.content = bytearray()
        self.held = 0
        self._gateway = gateway
        self._received = 0

    async def read(self, scope: Scope, protocol: HTTPProtocol) -> None:
        """Read to the end, or so far that it is known to be too large.

        Raises:
            _PutOffError: it comes too slowly, ends too early, or there is no room for it.
        """
        announced = scope.headers.get("content-length")
        if announced is None and scope.headers.get("transfer-encoding") is None:
            return
        try:
            if announced is not None and int(announced) <= UNCOUNTED_BYTES:
                # In one piece: most bodies are small, and each await costs more than the copying.
                async with asyncio.timeout(GRACE_S):
                    self._take(await protocol())
            else:
                await self._read_parts(protocol)
        except TimeoutError:
            raise _PutOffError("the body came too slowly") from None
        except ProtocolError:
            raise _PutOffError("the body ended too early") from None
        if announced is not None and self._received < min(int(announced), READ_AWAY_BYTES):
            raise _PutOffError("the body ended too early")

    async def _read_parts(self, protocol: HTTPProtocol) -> None:
        begun = asyncio.get_running_loop().time()
        async with asyncio.timeout_at(begun + GRACE_S) as limit:
            async for part in protocol:
                self._take(part)
                limit.reschedule(begun + GRACE_S + self._received / LEAST_BYTES_A_SECOND)
                if self._received > READ_AWAY_BYTES:
                    return

    def _take(self, part: bytes) -> None:
        self._received += len(part)
        if len(self.content) > MAX_BYTES:
            return
        size = max(0, len(self.content) + len(part) - UNCOUNTED_BYTES) - self.held
        self._gateway.hold(size)
        self.held += size
        self.content += part


def create() -> Gateway:
    """Make the gateway to the application that the environment describes.

    Raises:
        ConfigurationError: a setting is missing or wrong.
    """
    settings = from_environment()
    return Gateway(app.create_app(settings), settings.web_threads)


def _note(answered: asyncio.Future[None]) -> None:
    if not answered.done():
        answered.set_result(None)


def _put_off(protocol: HTTPProtocol, reason: str) -> None:
    # Not 408: the published SDK drops for good what is answered by a 4xx.
    headers = [("Content-Type", "application/json"), ("Retry-After", "1"), ("Connection", "close")]
    protocol.response_str(503, headers, f'{{"ok":false,"error":"{reason}"}}')


def _stream(transport: Any, parts: Iterable[bytes], loop: asyncio.AbstractEventLoop) -> None:
    """Send the parts of an answer as they come, until the client is gone."""

    async def send(part: bytes) -> None:
        await transport.send_bytes(part)

    for part in parts:
        try:
            asyncio.run_coroutine_threadsafe(send(part), loop).result()
        except Exception:  # noqa: BLE001 - whatever Granian raises, nobody listens any more
            return


def _environ(scope: Scope, body: _Body) -> Environ:
    host, _, port = scope.server.rpartition(":")
    environ: Environ = {
        "REQUEST_METHOD": scope.method,
        "SCRIPT_NAME": "",
        # WSGI's strings hold bytes.
        "PATH_INFO": scope.path.encode().decode("latin-1"),
        "QUERY_STRING": scope.query_string,
        "SERVER_NAME": host.strip("[]"),
        "SERVER_PORT": port,
        "SERVER_PROTOCOL": f"HTTP/{scope.http_version}",
        "REMOTE_ADDR": scope.client.rpartition(":")[0].strip("[]"),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.scheme,
        "wsgi.input": io.BytesIO(body.content),
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for name, value in scope.headers.items():
        _add_header(environ, name, value)
    environ.setdefault("HTTP_HOST", scope.authority or "")
    return environ


def _add_header(environ: Environ, name: str, value: str) -> None:
    key = name.upper().replace("-", "_")
    if key not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        key = f"HTTP_{key}"
    if key in environ:
        separator = "; " if key == "HTTP_COOKIE" else ","
        value = f"{environ[key]}{separator}{value}"
    environ[key] = value

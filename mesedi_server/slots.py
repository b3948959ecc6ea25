"""How many requests of a process run at once, not counting those that wait for their bodies.

A thread that reads a body waits for its sender, and a WSGI server cannot end that wait: a few clients that announce a
body and send nothing would hold every thread. So there are many threads, of which few run at a time: one that waits
gives its slot away.
"""

from collections.abc import Callable, Iterable
from threading import Semaphore
from typing import Any, TypeAlias

Wsgi: TypeAlias = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

WAITING = 256
"""Requests of a process that may wait for their bodies, besides those that run; a thread each, made when needed."""


class Slots:
    """WSGI middleware: lets a number of requests run, and others wait for their bodies meanwhile."""

    def __init__(self, wsgi: Wsgi, number: int) -> None:
        self._wsgi = wsgi
        self._free = Semaphore(number)

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Answer one request. An answer that is a stream is sent without a slot."""
        environ["wsgi.input"] = _Body(environ["wsgi.input"], self._free)
        with self._free:
            return self._wsgi(environ, start_response)


class _Body:
    """A request's body; its reader holds no slot while it waits for more."""

    def __init__(self, body: Any, free: Semaphore) -> None:
        self._body = body
        self._free = free

    def read(self, size: int = -1) -> bytes:
        self._free.release()
        try:
            data: bytes = self._body.read(size)
        finally:
            self._free.acquire()
        return data

"""A road to PostgreSQL that a test can close: the database is away, and comes back."""

import socket
import threading
from contextlib import suppress

from sqlalchemy import make_url

_PIECE = 65536


class Proxy:
    """Forwards a TCP port of its own to a database, until it is told to refuse."""

    def __init__(self, database_url: str) -> None:
        self._target = make_url(database_url)
        self._lock = threading.Lock()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._threads: list[threading.Thread] = []
        self._is_open = True
        self.has_refused = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._start(self._accept)

    @property
    def url(self) -> str:
        port = self._listener.getsockname()[1]
        through = self._target.set(host="127.0.0.1", port=port, query={})
        user = self._target.username or self._target.query.get("user")
        return through.set(username=user).render_as_string(hide_password=False)

    def refuse(self) -> None:
        """Cut every connection, and take no other."""
        with self._lock:
            self._is_open = False
            self.has_refused.clear()
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            _cut(pair)

    def resume(self) -> None:
        with self._lock:
            self._is_open = True

    def close(self) -> None:
        self.refuse()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if not self._is_open:
                    client.close()
                    self.has_refused.set()
                    continue
                pair = (client, self._connect())
                self._pairs.add(pair)
            for source, sink in (pair, pair[::-1]):
                self._start(self._pump, source, sink, pair)

    def _connect(self) -> socket.socket:
        host = self._target.host or str(self._target.query["host"])
        port = self._target.port or 5432
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{port}")
        return server

    def _pump(self, source: socket.socket, sink: socket.socket, pair) -> None:
        with suppress(OSError):
            while piece := source.recv(_PIECE):
                sink.sendall(piece)
        with self._lock:
            is_last = pair not in self._pairs
            self._pairs.discard(pair)
        if not is_last:
            _cut(pair)

    def _start(self, target, *arguments) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()


def _cut(pair: tuple[socket.socket, socket.socket]) -> None:
    for one in pair:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()

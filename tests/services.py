"""A PostgreSQL and a Redis-protocol broker for one test session.

MESEDI_TEST_DATABASE_URL and MESEDI_TEST_BROKER_URL name servers to use, the first as a user who
may create databases. What is not given is started for the session, and stopped at its end.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
from psycopg import sql
from sqlalchemy import make_url

from mesedi_server.embedded import Addresses, EmbeddedServers

_ROOM_BYTES = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Services:
    """The servers of a session, and the databases it makes there."""

    postgres_url: str
    """A database of the server, to make others from."""
    broker_url: str
    run: str
    """What the names of this session's databases begin with."""

    def template_database(self, migrate: Callable[[str], None]) -> str:
        """Return the name of a migrated database, made at the first call in the session."""
        template = f"{self.run}_{migrate.__module__}_{migrate.__qualname__}".replace(".", "_")[:63]
        draft = f"{self.run}_draft"
        with self._connection() as connection:
            # Test processes that come second wait here, and find the template made.
            connection.execute("SELECT pg_advisory_lock(hashtext(%s))", (self.run,))
            if not self._names(connection, template):
                _execute(connection, "DROP DATABASE IF EXISTS {} WITH (FORCE)", draft)
                _execute(connection, "CREATE DATABASE {}", draft)
                migrate(self._url_of(draft))
                _execute(connection, "ALTER DATABASE {} RENAME TO {}", draft, template)
        return template

    @contextmanager
    def fresh_database(self, template: str = "template1") -> Iterator[str]:
        """Give the URL of a new copy of a database, dropped afterwards."""
        name = f"{self.run}_{uuid4().hex[:12]}"
        with self._connection() as connection:
            # On a RAM disk copying files takes 10 ms, copying pages through the log 80 ms.
            strategy = "STRATEGY FILE_COPY" if connection.info.server_version >= 150000 else ""
            _execute(connection, f"CREATE DATABASE {{}} TEMPLATE {{}} {strategy}", name, template)
        try:
            yield self._url_of(name)
        finally:
            with self._connection() as connection:
                _execute(connection, "DROP DATABASE {} WITH (FORCE)", name)

    def broker_for(self, worker: int) -> str:
        """Return the broker's URL with a number of its own for each test process."""
        url = urlsplit(self.broker_url)
        if url.scheme == "redis+socket":
            return f"{self.broker_url}?virtual_host={worker}"
        if url.scheme in {"redis", "rediss"}:
            return url._replace(path=f"/{int(url.path.strip('/') or 0) + worker}").geturl()
        return self.broker_url

    def drop_databases(self) -> None:
        """Drop what the session left."""
        with self._connection() as connection:
            for name in self._names(connection, f"{self.run}_%"):
                _execute(connection, "DROP DATABASE {} WITH (FORCE)", name)

    def _connection(self) -> psycopg.Connection:
        url = make_url(self.postgres_url).set(drivername="postgresql")
        return psycopg.connect(url.render_as_string(hide_password=False), autocommit=True)

    def _url_of(self, database: str) -> str:
        return make_url(self.postgres_url).set(database=database).render_as_string(False)

    def _names(self, connection: psycopg.Connection, pattern: str) -> list[str]:
        query = "SELECT datname FROM pg_database WHERE datname LIKE %s"
        return [name for (name,) in connection.execute(query, (pattern.replace("_", r"\_"),))]


@contextmanager
def session_services() -> Iterator[Services]:
    """Give the servers of the environment; start those that it does not name."""
    database_url = os.environ.get("MESEDI_TEST_DATABASE_URL", "")
    broker_url = os.environ.get("MESEDI_TEST_BROKER_URL", "")
    with ExitStack() as stack:
        if not database_url or not broker_url:
            started = _start(stack)
            database_url = database_url or started.database_url
            broker_url = broker_url or started.broker_url
        services = Services(database_url, broker_url, f"mesedi_test_{uuid4().hex[:8]}")
        stack.callback(services.drop_databases)
        yield services


def _start(stack: ExitStack) -> Addresses:
    place = tempfile.TemporaryDirectory(prefix="mesedi-tests-", dir=_ram_disk())
    folder = stack.enter_context(place)
    return stack.enter_context(EmbeddedServers(Path(folder), durable=False))


def _ram_disk() -> str | None:
    """Name a RAM disk with room for the tests' databases: each has 8 MB in 300 files."""
    place = Path("/dev/shm")
    if place.is_dir() and os.access(place, os.W_OK):
        return str(place) if shutil.disk_usage(place).free > _ROOM_BYTES else None
    return None


def _execute(connection: psycopg.Connection, statement: str, *names: str) -> None:
    connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))

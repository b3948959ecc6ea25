"""Connections and transactions."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy import Connection, create_engine, exc, make_url

from mesedi_server.errors import ConfigurationError, RefusedError, UnavailableError

__all__ = ["Connection", "DataRefusedError", "Database", "driver_url", "savepoint"]

_WEB_OPTIONS = (
    "-c timezone=UTC"
    # A request must be over well within the SDK's ten seconds: better a 503 that it tries again.
    " -c statement_timeout=8000 -c lock_timeout=5000"
    " -c idle_in_transaction_session_timeout=60000"
)
_WORKER_OPTIONS = "-c timezone=UTC -c lock_timeout=60000"

# SQLSTATE classes (PostgreSQL manual, appendix A).
_TRANSIENT = (
    "08",  # connection trouble
    "25006",  # a standby that is not promoted yet
    "40",  # deadlock, serialization failure
    "53",  # disk full, out of memory, too many connections
    "55",  # lock not available
    "57",  # cancelled, shutting down, starting up
    "58",  # input/output error
)
_TOO_DEEP = "54001"


class DataRefusedError(RefusedError):
    """PostgreSQL cannot hold a value that was sent to it: NUL, out of range, nested too deep."""


class Database:
    """A pool of connections to one PostgreSQL.

    Args:
        url: any PostgreSQL URL; psycopg 3 is the driver.
        connections: how many at most.
        patient: for workers and commands, that may wait longer than a request.
    """

    def __init__(self, url: str, *, connections: int = 8, patient: bool = False) -> None:
        self._engine = create_engine(
            driver_url(url),
            pool_size=connections,
            max_overflow=2,
            pool_timeout=5,
            connect_args={
                "options": _WORKER_OPTIONS if patient else _WEB_OPTIONS,
                "connect_timeout": 5,
            },
        )
        self._single = self._engine.execution_options(isolation_level="AUTOCOMMIT")

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Open a transaction: committed at the end, rolled back on an error.

        Raises:
            UnavailableError: the database is away, full, or too busy; trying again may help.
            DataRefusedError: a value that PostgreSQL cannot hold.
        """
        with _explained(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def statement(self) -> Iterator[Connection]:
        """Open a connection on which each statement is a transaction of its own.

        For writes that are one statement: begin and commit would be two more rounds to the database.

        Raises:
            UnavailableError, DataRefusedError: as `transaction`.
        """
        with _explained(), self._single.connect() as connection:
            yield connection

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


def driver_url(url: str) -> str:
    """Name psycopg 3 as the driver, whatever the URL said.

    Raises:
        ConfigurationError: the URL is not one of PostgreSQL.
    """
    try:
        parsed = make_url(url)
    except exc.ArgumentError as error:
        raise ConfigurationError("MESEDI_DATABASE_URL is not a database URL") from error
    if parsed.get_backend_name() not in ("postgresql", "postgres"):
        raise ConfigurationError("MESEDI_DATABASE_URL must name a PostgreSQL database")
    return parsed.set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


@contextmanager
def savepoint(connection: Connection) -> Iterator[None]:
    """Open a part of a transaction that can fail alone: its error undoes no more than itself.

    Raises:
        UnavailableError, DataRefusedError: as `Database.transaction`.
    """
    with _explained(), connection.begin_nested():
        yield


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except exc.DBAPIError as error:
        raise _translated(error) from error
    except exc.TimeoutError as error:
        raise UnavailableError("all database connections are in use; try again") from error


def _translated(error: exc.DBAPIError) -> Exception:
    cause = error.orig
    state = getattr(cause, "sqlstate", None) or ""
    # A NUL is refused by the driver, without a SQLSTATE; what is out of range by PostgreSQL, with one of class 22.
    if isinstance(cause, psycopg.DataError) or state == _TOO_DEEP:
        return DataRefusedError(f"a value cannot be stored: {_first_line(cause)}")
    # A connection that was lost or refused has no SQLSTATE.
    lost = not state and isinstance(cause, (psycopg.OperationalError, psycopg.InterfaceError))
    if error.connection_invalidated or lost or state.startswith(_TRANSIENT):
        return UnavailableError(f"the database cannot be used just now: {_first_line(cause)}")
    return error


def _first_line(error: BaseException | None) -> str:
    return str(error).strip().partition("\n")[0][:200]

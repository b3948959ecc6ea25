"""How often passwords were tried lately, so that they cannot be guessed, whatever process is asked."""

from datetime import timedelta

from sqlalchemy import ColumnElement, delete, func, insert, select

from mesedi_server.store.database import Connection
from mesedi_server.store.digests import digest
from mesedi_server.store.tables import sign_in_attempts

WINDOW = timedelta(minutes=15)
"""How far back attempts count."""
MOST_PER_NAME = 10
"""Wrong passwords for one name within WINDOW; then nobody may try it, wherever they are."""
MOST_PER_ADDRESS = 100
"""Wrong passwords from one address within WINDOW; behind a proxy everybody has the proxy's."""

_LOCK = 0x7369676E  # "sign"

_s = sign_in_attempts.c


def begin(connection: Connection, name: str, address: str) -> bool:
    """Count an attempt before its password is looked at; tell whether it may be.

    Commit before looking, so that attempts at the same moment count too.
    """
    connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
    of_name = _count(connection, _s.name_hash == digest(name))
    of_address = _count(connection, _s.address == address)
    is_allowed = of_name < MOST_PER_NAME and of_address < MOST_PER_ADDRESS
    if is_allowed:
        connection.execute(insert(sign_in_attempts).values(name_hash=digest(name), address=address))
    return is_allowed


def forget(connection: Connection, name: str) -> None:
    """Forget the attempts at a name whose password was right at last."""
    connection.execute(delete(sign_in_attempts).where(_s.name_hash == digest(name)))


def delete_outdated(connection: Connection) -> int:
    """Delete the attempts that no longer count; return how many."""
    statement = delete(sign_in_attempts).where(_s.at <= func.now() - WINDOW)
    return connection.execute(statement).rowcount


def _count(connection: Connection, whose: ColumnElement[bool]) -> int:
    statement = select(func.count()).where(whose, _s.at > func.now() - WINDOW)
    return int(connection.execute(statement).scalar_one())

"""Checking a password so that nobody can try many."""

from flask import request

from mesedi_server import passwords
from mesedi_server.errors import RefusedError
from mesedi_server.runtime import runtime
from mesedi_server.store import sign_in_attempts
from mesedi_server.store.sign_in_attempts import WINDOW

WAIT_MINUTES = int(WINDOW.total_seconds() // 60)


class TooManyAttemptsError(RefusedError):
    """A password was tried too often."""

    def __init__(self) -> None:
        super().__init__(
            f"a password was wrong too often; try again in {WAIT_MINUTES} minutes,"
            " or sign in with a link",
            429,
        )


def check(name: str, password: str, stored: str | None) -> None:
    """Make sure that a password is right; every wrong one counts.

    Args:
        name: whose password it is said to be.
        password: what was typed.
        stored: the hash that it must match; None: nobody has this name, or no password.

    Raises:
        TooManyAttemptsError: this name or this address has tried too often; the password was not looked at (429).
        RefusedError: the password is wrong (403).
    """
    database = runtime().database
    # In a transaction of its own: what is tried at the same moment must see it, and a refusal must not undo it.
    with database.transaction() as connection:
        is_allowed = sign_in_attempts.begin(connection, name, request.remote_addr or "")
    if not is_allowed:
        raise TooManyAttemptsError
    if not passwords.is_right(password, stored):
        raise RefusedError("the name or the password is wrong", 403)
    with database.transaction() as connection:
        sign_in_attempts.forget(connection, name)

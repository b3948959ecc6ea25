"""Passwords: hashed with argon2id, and compared at the same cost whether there is one or not."""

from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from mesedi_server.errors import RefusedError

MIN_CHARACTERS = 10
"""Characters that a new password needs."""
MAX_BYTES = 1000
"""Bytes that a password may have."""

# OWASP's smallest recommended parameters: eight threads that sign people in at once take 152 MiB, not half a GiB.
_hasher = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)


def hashed(password: str) -> str:
    """Return what to store of a new password.

    Raises:
        RefusedError: it is too short or too long.
    """
    if len(password) < MIN_CHARACTERS:
        raise RefusedError(f"password: at least {MIN_CHARACTERS} characters, please")
    if len(password.encode()) > MAX_BYTES:
        raise RefusedError(f"password: at most {MAX_BYTES} bytes, please")
    return _hasher.hash(password)


def is_right(password: str, stored: str | None) -> bool:
    """Tell whether a password is the one that was stored; None: there is none, and nothing is right."""
    if len(password.encode()) > MAX_BYTES:
        return False
    try:
        return _hasher.verify(stored or _nobodys(), password) and stored is not None
    except (VerificationError, InvalidHashError):
        return False


@cache
def _nobodys() -> str:
    return _hasher.hash("nobody signs in with this, but it takes as long")

"""What is kept of keys, links, sessions and names that nobody may read out of the database."""

from hashlib import sha256


def digest(text: str) -> bytes:
    """Return the SHA-256: fit for long random secrets and look-ups, not for passwords."""
    return sha256(text.encode()).digest()

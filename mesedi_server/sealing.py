"""Secrets at rest: what the server must be able to read again, sealed with a key that is not in the database.

AES-256-GCM. The key comes of the server's secret by HKDF; the context, say whose secret it is, is authenticated with
it, so that a sealed text copied to another row does not open there.
"""

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from mesedi_server.errors import MesediError

SECRET_FILE = "secret-key"  # noqa: S105 - the name of a file
"""Where a data folder keeps the secret that `mesedi-server up` has made."""

_VERSION = b"\x01"
_NONCE_BYTES = 12


class NoSecretKeyError(MesediError):
    """The server has no secret key, so it can neither keep nor read the keys of others: set MESEDI_SECRET_KEY."""


class WrongSecretKeyError(MesediError):
    """It was sealed with another secret key, or damaged since."""


def seal(secret: str, text: str, context: str) -> bytes:
    """Encrypt a text.

    Args:
        secret: the server's secret.
        text: what to keep.
        context: what it belongs to; it must be the same when it is opened.

    Raises:
        NoSecretKeyError: the secret is empty.
    """
    nonce = secrets.token_bytes(_NONCE_BYTES)
    sealed = AESGCM(_key(secret)).encrypt(nonce, text.encode(), context.encode())
    return _VERSION + nonce + sealed


def unseal(secret: str, sealed: bytes, context: str) -> str:
    """Decrypt what `seal` made.

    Raises:
        NoSecretKeyError: the secret is empty.
        WrongSecretKeyError: sealed with another secret or for another context, or damaged.
    """
    key = _key(secret)
    nonce = sealed[1 : 1 + _NONCE_BYTES]
    if sealed[:1] != _VERSION or len(nonce) != _NONCE_BYTES:
        raise WrongSecretKeyError
    try:
        text = AESGCM(key).decrypt(nonce, sealed[1 + _NONCE_BYTES :], context.encode())
    except InvalidTag:
        # Without its cause: nothing about the sealed text belongs into a log.
        raise WrongSecretKeyError from None
    return text.decode()


def secret_of_folder(data_dir: Path) -> str:
    """Return the secret that a data folder keeps, made at the first call, readable by its owner alone."""
    path = data_dir / SECRET_FILE
    if not path.exists():
        _make_secret(path)
    return path.read_text().strip()


def _make_secret(path: Path) -> None:
    """Write a new secret, whole or not at all; one that is there already stays."""
    file, draft = tempfile.mkstemp(prefix=f".{SECRET_FILE}-", dir=path.parent)
    try:
        with os.fdopen(file, "w") as opened:
            opened.write(f"{secrets.token_urlsafe(32)}\n")
            opened.flush()
            os.fsync(opened.fileno())
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        Path(draft).unlink()


def _key(secret: str) -> bytes:
    if not secret:
        raise NoSecretKeyError
    return HKDF(SHA256(), length=32, salt=None, info=b"mesedi sealing 1").derive(secret.encode())

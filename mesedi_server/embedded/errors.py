"""Why the embedded servers cannot run; each message says the way out.

EmbeddedError
├── BinariesMissingError    no PostgreSQL or Valkey to run
├── AccountMissingError     root, and no account to run them under
├── FolderInUseError        another process holds the data folder
├── FolderNotFoundError     nothing was ever stored there
├── FolderUnusableError     read-only, full, not ours
├── WrongVersionError       the data belong to another PostgreSQL
└── ServerFailedError       a server did not start or did not stop
"""

from mesedi_server.errors import MesediError


class EmbeddedError(MesediError):
    """The embedded servers cannot run."""


class BinariesMissingError(EmbeddedError):
    """No program of that name was found."""


class AccountMissingError(EmbeddedError):
    """There is no unprivileged account to run the servers under."""


class FolderInUseError(EmbeddedError):
    """Another process holds the data folder."""


class FolderNotFoundError(EmbeddedError):
    """The data folder does not exist."""


class FolderUnusableError(EmbeddedError):
    """The data folder cannot be written."""


class WrongVersionError(EmbeddedError):
    """The data folder belongs to another major version of PostgreSQL."""


class ServerFailedError(EmbeddedError):
    """A server did not start or did not stop."""

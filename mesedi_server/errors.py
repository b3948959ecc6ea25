"""Everything the server raises on purpose.

MesediError
├── ConfigurationError      a setting is missing or wrong
├── EmbeddedError           see embedded.errors
├── SchemaError             the database's schema is not the code's
├── RefusedError            a request that can't be taken: 4xx, never retried
│   ├── DataRefusedError    400, see store.database
│   ├── FieldsRefusedError  400
│   ├── NotFoundError       404
│   └── ConflictError       409
└── UnavailableError        trouble that passes: 503 with Retry-After
"""

from collections.abc import Mapping


class MesediError(Exception):
    """Something the server can explain."""

    def __str__(self) -> str:
        return super().__str__() or (self.__doc__ or "").strip()


class ConfigurationError(MesediError):
    """A setting is missing or wrong."""


class SchemaError(MesediError):
    """The database's schema is not the one this code needs."""


class RefusedError(MesediError):
    """The request cannot be taken.

    Args:
        reason: what is wrong, for the sender to read.
        status: the HTTP status, 400 by default.
    """

    def __init__(self, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.status = status


class FieldsRefusedError(RefusedError):
    """Fields of the request cannot be taken.

    Args:
        faults: what is wrong, by field.
    """

    def __init__(self, faults: Mapping[str, str]) -> None:
        self._faults = faults
        super().__init__(self.in_words({}))

    def in_words(self, labels: Mapping[str, str]) -> str:
        """Say what is wrong, with the labels that a form gives its fields."""
        return "; ".join(
            f"{labels.get(name, name)}: {fault}" for name, fault in self._faults.items()
        )


class NotFoundError(RefusedError):
    """Unknown here, or another project's."""

    def __init__(self, what: str) -> None:
        super().__init__(f"unknown {what}", 404)


class ConflictError(RefusedError):
    """The present state does not allow it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, 409)


class UnavailableError(MesediError):
    """The database cannot be used just now; try again."""

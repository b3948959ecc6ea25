"""What `configure` was told, checked once."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from mesedi.errors import ConfigurationError

DEFAULT_BASE_URL = "http://127.0.0.1:8080"
_KEY_PREFIX = "mesedi_sk_"


@dataclass(frozen=True)
class Settings:
    """Times in seconds, sizes in bytes unless the name says otherwise."""

    api_key: str = field(repr=False)
    base_url: str = DEFAULT_BASE_URL
    timeout_s: float = 10.0
    flush_interval_s: float = 0.25
    batch_size: int = 100
    batch_bytes: int = 1_000_000
    max_queue: int = 25_000
    max_queue_bytes: int = 64 * 1024 * 1024
    exit_timeout_s: float = 1.8  # leaves the interpreter 0.2 s of the promised 2
    max_backoff_s: float = 30.0
    labels: Mapping[str, str] = field(default_factory=dict)
    """Sent with every execution: `release`, `environment`, `tenant_id`."""

    def __post_init__(self) -> None:
        if not self.api_key.startswith(_KEY_PREFIX) or not self.api_key.isascii():
            raise ConfigurationError(f"api_key must start with {_KEY_PREFIX!r}")
        if not self.api_key.isprintable() or " " in self.api_key:
            raise ConfigurationError("api_key holds a blank or a control character")
        if self.address.scheme not in ("http", "https") or not self.address.hostname:
            raise ConfigurationError("base_url must look like https://host[:port][/path]")
        for name in ("timeout_s", "batch_size", "batch_bytes", "max_queue", "max_queue_bytes"):
            if getattr(self, name) <= 0:
                raise ConfigurationError(f"{name} must be greater than 0")

    @property
    def address(self) -> SplitResult:
        """The base URL in parts."""
        try:
            parts = urlsplit(self.base_url)
            parts.port  # noqa: B018 - reading it is what checks it
        except ValueError as error:
            raise ConfigurationError(f"base_url cannot be read: {error}") from None
        return parts


def from_environment(name: str, given: str | None) -> str | None:
    """Answer what was given, else the environment's `MESEDI_<name>`; blank is not given."""
    value = (given if given is not None else os.environ.get(f"MESEDI_{name}", "")).strip()
    return value or None

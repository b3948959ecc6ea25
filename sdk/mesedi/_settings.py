"""What `configure` was told, checked once."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from mesedi._version import __version__
from mesedi.errors import ConfigurationError

DEFAULT_BASE_URL = "http://127.0.0.1:8080"
_POSITIVE = (
    "timeout_s",
    "batch_size",
    "batch_bytes",
    "max_queue",
    "max_queue_bytes",
    "max_spool_bytes",
)
_NOT_NEGATIVE = (
    "flush_interval_s",
    "exit_timeout_s",
    "max_backoff_s",
    "max_event_bytes",
    "max_answer_bytes",
)
_LEAST_EVENT_BYTES = 4_096  # room for every name, and for the marks of what was cut
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
    max_event_bytes: int = 32_768  # the wire's bound for a payload
    max_answer_bytes: int = 2 * 1024 * 1024
    before_send: Callable[[dict[str, Any]], Mapping[str, Any] | None] | None = None
    sample_rates: Mapping[str, float] = field(default_factory=dict)
    spool: Path | None = None
    max_spool_bytes: int = 256 * 1024 * 1024
    labels: Mapping[str, str] = field(default_factory=dict)
    """Sent with every execution: `release`, `environment`, `tenant_id`."""

    def __post_init__(self) -> None:
        if not self.api_key.startswith(_KEY_PREFIX) or not self.api_key.isascii():
            raise ConfigurationError(f"api_key must start with {_KEY_PREFIX!r}")
        if not self.api_key.isprintable() or " " in self.api_key:
            raise ConfigurationError("api_key holds a blank or a control character")
        if self.address.scheme not in ("http", "https") or not self.address.hostname:
            raise ConfigurationError("base_url must look like https://host[:port][/path]")
        for name in (*_POSITIVE, *_NOT_NEGATIVE):
            self._check_number(name)
        for name in ("max_event_bytes", "max_answer_bytes"):
            if getattr(self, name) < _LEAST_EVENT_BYTES:
                raise ConfigurationError(f"{name} must be at least {_LEAST_EVENT_BYTES}")
        for evaluator, rate in self.sample_rates.items():
            if not isinstance(rate, int | float) or not 0 <= rate <= 1:
                raise ConfigurationError(f"sample_rates[{evaluator!r}] must be between 0 and 1")

    def _check_number(self, name: str) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise ConfigurationError(f"{name.removesuffix('_s')} must be a finite number")
        if value < 0 or (value == 0 and name in _POSITIVE):
            least = "greater than 0" if name in _POSITIVE else "0 or more"
            raise ConfigurationError(f"{name.removesuffix('_s')} must be {least}")

    @property
    def address(self) -> SplitResult:
        """The base URL in parts."""
        try:
            parts = urlsplit(self.base_url)
            parts.port  # noqa: B018 - reading it is what checks it
        except ValueError as error:
            raise ConfigurationError(f"base_url cannot be read: {error}") from None
        return parts

    @property
    def headers(self) -> dict[str, str]:
        """What every request says."""
        return {
            "Authorization": f"Bearer {self.api_key}",
            "User-Agent": f"mesedi-python/{__version__}",
            "X-Mesedi-Schema-Version": "1",
        }


def from_environment(name: str, given: str | None) -> str | None:
    """Answer what was given, else the environment's `MESEDI_<name>`; blank is not given."""
    value = (given if given is not None else os.environ.get(f"MESEDI_{name}", "")).strip()
    return value or None

"""What can be set, by environment variables, with defaults.

An empty variable counts as unset. `docs/settings.md` lists the same names for operators.
"""

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from mesedi_server.errors import ConfigurationError

SHORTEST_SECRET = 32
"""Characters that a secret key needs."""

_FLAGS = {"": False, "0": False, "false": False, "1": True, "true": True}


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one process."""

    database_url: str
    """`postgresql+psycopg://…` or `postgresql://…`."""
    broker_url: str
    """`redis://…`, `redis+socket://…` or `amqp://…`."""
    settle_s: float = 60.0
    """How long an open execution must be quiet before its scores are examined."""
    debounce_s: float = 2.0
    """How long a late event waits for its neighbours before the execution is examined again."""
    halt_streams: int = 4
    """Halt streams a process holds at once; each takes a server thread."""
    web_threads: int = 8
    """Threads a web process answers with; each may hold one database connection."""
    web_workers: int = 2
    """Web processes."""
    worker_processes: int = 2
    """Celery processes that examine executions."""
    public_url: str = ""
    """Address that people reach the pages at; empty: as the request says."""
    secret_key: str = field(default="", repr=False)
    """What the keys of judges are encrypted with; empty: none can be kept."""
    private_judges: bool = False
    """Whether a judge's address may be private: this machine, its network."""
    command: str = "mesedi-server"
    """What people type to start the command, words for a shell."""
    data: str = ""
    """Data folder of the embedded servers, for commands that people type; empty: they are not used."""

    def command_line(self, *words: str) -> str:
        """Return a command for people to type."""
        return command_line(self.command, self.data, *words)


def command_line(command: str, data: str, *words: str) -> str:
    """Return a command for people to type.

    Args:
        command: what starts it, words for a shell.
        data: data folder that it is about; empty: none.
        words: what it is to do.
    """
    options = ["--data", data] if data else []
    return f"{command} {shlex.join([*words, *options])}"


def from_environment(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings.

    Raises:
        ConfigurationError: a needed variable is missing, or a number is not one.
    """
    return Settings(
        database_url=_needed(environment, "MESEDI_DATABASE_URL"),
        broker_url=_needed(environment, "MESEDI_BROKER_URL"),
        settle_s=_number(environment, "MESEDI_SETTLE_SECONDS", 60.0),
        debounce_s=_number(environment, "MESEDI_DEBOUNCE_SECONDS", 2.0),
        halt_streams=_count(environment, "MESEDI_HALT_STREAMS", 4, lowest=0),
        web_threads=_count(environment, "MESEDI_WEB_THREADS", 8),
        web_workers=_count(environment, "MESEDI_WEB_WORKERS", 2),
        worker_processes=_count(environment, "MESEDI_WORKER_PROCESSES", 2),
        public_url=environment.get("MESEDI_PUBLIC_URL", "").rstrip("/"),
        secret_key=_secret(environment, "MESEDI_SECRET_KEY"),
        private_judges=_flag(environment, "MESEDI_PRIVATE_JUDGES"),
        command=environment.get("MESEDI_COMMAND", "").strip() or "mesedi-server",
        data=environment.get("MESEDI_DATA", "").strip(),
    )


def _needed(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "").strip()
    if not value:
        raise ConfigurationError(f"{name} is not set. `mesedi-server up` needs no settings at all.")
    return value


def _secret(environment: Mapping[str, str], name: str) -> str:
    """Read a secret, which no message shows."""
    value = environment.get(name, "").strip()
    if value and len(value) < SHORTEST_SECRET:
        raise ConfigurationError(
            f"{name} must have {SHORTEST_SECRET} characters or more: `openssl rand -base64 32`"
        )
    return value


def _flag(environment: Mapping[str, str], name: str) -> bool:
    text = environment.get(name, "").strip().lower()
    if text not in _FLAGS:
        raise ConfigurationError(f"{name} must be true or false, not {text!r}.")
    return _FLAGS[text]


def _number(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name, "").strip()
    try:
        value = float(text) if text else default
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ConfigurationError(f"{name} must be a number of seconds, not {text!r}.")
    return value


def _count(environment: Mapping[str, str], name: str, default: int, *, lowest: int = 1) -> int:
    text = environment.get(name, "").strip()
    try:
        value = int(text) if text else default
    except ValueError:
        value = lowest - 1
    if value < lowest:
        raise ConfigurationError(f"{name} must be a whole number from {lowest} up, not {text!r}.")
    return value

"""What the requests of one process share."""

from dataclasses import dataclass, field
from threading import BoundedSemaphore
from typing import cast

from flask import Flask, current_app

from mesedi_server.config import Settings
from mesedi_server.store.database import Database
from mesedi_server.store.projects import KeyHolder
from mesedi_server.tasks.waking import Waker

KEY_TRUST_S = 5.0
"""How long a key is trusted before it is looked up again: a revoked one dies within this time."""

_EXTENSION = "mesedi"


@dataclass(slots=True)
class Runtime:
    """The process's database, its waker of workers, and what it has counted out."""

    settings: Settings
    database: Database
    waker: Waker
    halt_slots: BoundedSemaphore
    download_slots: BoundedSemaphore
    keys: dict[str, tuple[float, KeyHolder]] = field(default_factory=dict)
    """API keys seen lately: until when they are trusted, and whom they speak for."""

    def forget_key(self, key_id: str) -> None:
        """Trust a key no longer; other processes do so within `KEY_TRUST_S`."""
        for key, (_, holder) in list(self.keys.items()):
            if holder.key_id == key_id:
                self.keys.pop(key, None)


def runtime() -> Runtime:
    """Return the runtime of the application that answers this request."""
    return cast("Runtime", current_app.extensions[_EXTENSION])


def attach(app: Flask, state: Runtime) -> None:
    """Give an application its runtime."""
    app.extensions[_EXTENSION] = state

"""Who may do what: API keys and their scopes."""

import time
from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from flask import g, request

from mesedi_server.errors import RefusedError
from mesedi_server.permission import PERMISSION, View, open_to_all
from mesedi_server.runtime import KEY_TRUST_S, Runtime, runtime
from mesedi_server.schemas.lenient_json import storable
from mesedi_server.store import projects
from mesedi_server.store.projects import KEY_PREFIX, KeyHolder

__all__ = ["PERMISSION", "holder", "open_to_all", "scope"]


def scope(name: str) -> Callable[[View], View]:
    """Open a route to keys of a scope.

    The view finds whom the key speaks for with `holder()`.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def checked(*args: Any, **kwargs: Any) -> Any:
            _check_schema_version()
            found = _authenticate(runtime())
            if not found.may(name):
                raise RefusedError(f"this key has no scope {name!r}", 403)
            g.key_holder = found
            # What PostgreSQL cannot hold names nothing that is there: the view says so.
            return view(*args, **storable(kwargs))

        setattr(checked, PERMISSION, f"scope {name}")
        return cast("View", checked)

    return decorate


def holder() -> KeyHolder:
    """Whom this request's key speaks for."""
    return cast("KeyHolder", g.key_holder)


def _check_schema_version() -> None:
    version = request.headers.get("X-Mesedi-Schema-Version")
    if version not in (None, "1"):
        raise RefusedError(f"X-Mesedi-Schema-Version {version!r} is unknown; this server speaks 1")


def _authenticate(state: Runtime) -> KeyHolder:
    key = _presented_key()
    now = time.monotonic()
    cached = state.keys.get(key)
    if cached is not None and cached[0] > now:
        return cached[1]
    state.keys.pop(key, None)
    with state.database.transaction() as connection:
        found = projects.key_holder(connection, key)
    if found is None:
        raise RefusedError("unknown, revoked or expired API key", 401)
    if len(state.keys) >= 1000:  # noqa: PLR2004 - far more keys than any project has
        state.keys.clear()
    state.keys[key] = (now + KEY_TRUST_S, found)
    return found


def _presented_key() -> str:
    kind, _, key = request.headers.get("Authorization", "").partition(" ")
    key = key.strip()
    if kind.lower() != "bearer" or not key.startswith(KEY_PREFIX):
        raise RefusedError(f"an API key is needed: Authorization: Bearer {KEY_PREFIX}…", 401)
    return key

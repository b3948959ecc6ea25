"""`/health`, `/ready`, `/stats`."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
from flask import Blueprint, Response

from mesedi_server import __version__
from mesedi_server.api.access import holder, open_to_all, scope
from mesedi_server.api.answers import answer
from mesedi_server.errors import UnavailableError
from mesedi_server.runtime import runtime
from mesedi_server.store import health
from mesedi_server.store.database import Connection

blueprint = Blueprint("health", __name__)


@blueprint.get("/health")
@open_to_all
def get_health() -> Response:
    """Say that the process answers; nothing else is asked."""
    return answer({"ok": True, **_identity()})


@blueprint.get("/ready")
@open_to_all
def get_ready() -> Response:
    """Read and write for real, and say what fails."""
    checks: dict[str, Any] = {
        "database_read": _check(health.overdue_s),
        "database_write": _check(health.write),
        "broker": {"ok": True} if runtime().waker.is_reachable() else _failed("not reachable"),
    }
    # Without the broker everything is stored, and examined as soon as a worker looks by itself.
    is_ready = checks["database_read"]["ok"] and checks["database_write"]["ok"]
    return answer({"ok": is_ready, **_identity(), "checks": checks}, 200 if is_ready else 503)


@blueprint.get("/stats")
@scope("read")
def get_stats() -> Response:
    """Show the project in four numbers, and how long due work waits."""
    with runtime().database.transaction() as connection:
        stats = health.stats(connection, holder().project.pk)
        waiting_s = health.overdue_s(connection)
    return answer({"ok": True, **msgspec.structs.asdict(stats), "detection_lag_s": waiting_s})


def _identity() -> dict[str, Any]:
    return {"service": "mesedi-server", "version": __version__, "time": datetime.now(UTC)}


def _check(probe: Callable[[Connection], object]) -> dict[str, Any]:
    try:
        with runtime().database.transaction() as connection:
            probe(connection)
    except UnavailableError as error:
        return _failed(str(error))
    return {"ok": True}


def _failed(reason: str) -> dict[str, Any]:
    return {"ok": False, "reason": reason}

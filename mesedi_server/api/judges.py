"""`/project/judge`: the project's judge, what it was asked, and what became of it."""

from typing import Any

import msgspec
from flask import Blueprint, Response, request

from mesedi_server import judges
from mesedi_server.api import bodies, queries
from mesedi_server.api.access import holder, scope
from mesedi_server.api.answers import answer
from mesedi_server.judges import Standing
from mesedi_server.runtime import runtime
from mesedi_server.schemas import judges as schema
from mesedi_server.schemas.bodies import load, read_object
from mesedi_server.schemas.money import amount
from mesedi_server.store import judge_calls
from mesedi_server.store.database import Connection
from mesedi_server.store.judge_calls import Call, Spent
from mesedi_server.store.judge_settings import JudgeSettings
from mesedi_server.store.judge_work import MAX_WAITING, Earlier

blueprint = Blueprint("judges", __name__, url_prefix="/project/judge")


@blueprint.get("")
@scope("read")
def get_judge() -> Response:
    """Show the settings, without the key, and how the judge is doing."""
    with runtime().database.transaction() as connection:
        return _shown(connection)


@blueprint.put("")
@scope("admin")
def put_judge() -> Response:
    """Set the judge."""
    given = load(schema.SETTINGS, read_object(bodies.read(request)))
    who = holder()
    with runtime().database.transaction() as connection:
        judges.change(connection, who.project, given, runtime().settings, actor=who.actor)
        return _shown(connection)


@blueprint.get("/earlier")
@scope("read")
def count_earlier() -> Response:
    """Count the failing executions of the last days that the judge does not know, and what of them fits the queue."""
    days = queries.read(queries.EARLIER)["days"]
    with runtime().database.transaction() as connection:
        found = judges.count_earlier(connection, holder().project, days=days)
    return _earlier(days, found, "fitting")


@blueprint.post("/earlier")
@scope("admin")
def queue_earlier() -> Response:
    """Have failing answers of the last days judged, too."""
    days = load(schema.EARLIER, read_object(bodies.read(request)))["days"]
    who = holder()
    with runtime().database.transaction() as connection:
        queued = judges.queue_earlier(connection, who.project, days=days, actor=who.actor)
    return _earlier(days, queued, "queued")


@blueprint.get("/calls/<call_id>")
@scope("read")
def get_call(call_id: str) -> Response:
    """Show a call: what was asked, and what came back."""
    with runtime().database.transaction() as connection:
        call = judge_calls.of_id(connection, holder().project.pk, call_id)
    return answer({"ok": True, "call": _call(call)})


@blueprint.post("/calls/<call_id>/settle")
@scope("admin")
def settle_call(call_id: str) -> Response:
    """Say what became of a call whose outcome is unknown."""
    given = load(schema.SETTLEMENT, read_object(bodies.read(request)))
    who = holder()
    with runtime().database.transaction() as connection:
        judges.settle(connection, who.project, call_id, given, actor=who.actor)
        call = judge_calls.of_id(connection, who.project.pk, call_id)
    return answer({"ok": True, "call": _call(call)})


def _shown(connection: Connection) -> Response:
    standing = judges.standing(connection, holder().project.pk)
    settings = standing.settings
    content = None if settings is None else _settings(settings)
    return answer({"ok": True, "judge": content, **_doing(standing)})


def _settings(settings: JudgeSettings) -> dict[str, Any]:
    is_admin = holder().may("admin")
    return {
        **schema.SETTINGS.dump(settings),
        "has_key": settings.key_hint is not None,
        **({"key_hint": settings.key_hint} if is_admin else {}),
        "changed_at": settings.changed_at,
        "changed_by": settings.changed_by,
        "failing_since": settings.failing_since,
        "ask_after": settings.ask_after,
        "last_error": settings.last_error,
        "last_error_status": settings.last_error_status,
        "last_error_in_words": settings.last_error
        and judges.in_words(settings.last_error, settings.last_error_status),
        "last_error_at": settings.last_error_at,
        "not_queued": settings.not_queued,
    }


def _doing(standing: Standing) -> dict[str, Any]:
    return {
        "not_asking_because": standing.why_not,
        "spent": _spent(standing.spent),
        "waiting": standing.waiting,
        "most_waiting": MAX_WAITING,
        "unknown_count": standing.unknown_count,
        "unknown": standing.unknown,
        "last_reply_at": standing.last_reply_at,
        "replies": standing.replies,
    }


def _spent(spent: Spent) -> dict[str, Any]:
    return {
        "today": spent.today,
        "this_month": spent.this_month,
        "under_way": spent.under_way,
        "cost_today": amount(spent.cost_today_micros),
        "cost_this_month": amount(spent.cost_this_month_micros),
        "without_cost_this_month": spent.without_cost_this_month,
    }


def _earlier(days: int, found: Earlier, name: str) -> Response:
    part = {"executions": found.fitting_executions, "answers": found.fitting_answers}
    return answer({"ok": True, "days": days, "executions": found.executions, name: part})


def _call(call: Call) -> dict[str, Any]:
    texts = {"judge", "request", "reply", "settlement"}
    return {
        name: _read(value) if name in texts else value
        for name, value in msgspec.structs.asdict(call).items()
    }


def _read(text: str | None) -> Any:
    return msgspec.json.decode(text) if text else None

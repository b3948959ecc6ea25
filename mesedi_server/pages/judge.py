"""A project's judge: the form that sets it, what it has cost, what waits, and what nobody knows the outcome of."""

from collections.abc import Mapping
from typing import Any

from flask import Blueprint, redirect, request, url_for

from mesedi_server import judges
from mesedi_server.errors import RefusedError
from mesedi_server.pages import filters
from mesedi_server.pages.access import Answer, Visit, at_least
from mesedi_server.pages.layout import render
from mesedi_server.runtime import runtime
from mesedi_server.schemas import judges as schema
from mesedi_server.schemas import money
from mesedi_server.schemas.bodies import load
from mesedi_server.store import judge_work
from mesedi_server.store.judge_settings import JudgeSettings

blueprint = Blueprint("judge", __name__, url_prefix="/p/<project_id>/settings/judge")

ANSWERS = {
    "failing": "answers of executions in a grounding group",
    "sample": "a sample of all answers",
    "all": "all answers",
}
"""Which answers can be judged, and how the form says it."""

STATES = {
    "off": "off",
    "day": "on; today's budget is used up, and the rest waits for tomorrow",
    "cost_per_day": "on; today's budget in money has no room for another call, and the rest waits for tomorrow",
    "month": "on; the month's budget is used up, and the rest waits for the next",
    "cost_per_month": "on; the month's budget in money has no room for another call, and the rest waits for the next",
    "paused": "on; left alone for a while after a failure",
}
"""Why no call is made now, and how the page says it."""

LABELS = {
    "is_on": "Have answers judged",
    "url": "Address",
    "model": "Model",
    "key": "Key",
    "answers": "Which answers",
    "sample_percent": "Percent of a sample",
    "calls_per_day": "Calls a day, at most",
    "calls_per_month": "Calls a month, at most",
    "cost_per_call": "Cost of a call, at most",
    "cost_per_day": "Cost a day, at most",
    "cost_per_month": "Cost a month, at most",
    "concurrency": "Calls at once, at most",
    "min_correctness": "Least correctness",
    "days": "Failing executions of the last days",
    "reply": "The judge's reply, as it was; nothing if it gave none",
    "reason": "How you found out",
}
"""What the page calls the fields of its forms."""

_NUMBERS = ("calls_per_day", "calls_per_month", "concurrency", "sample_percent", "min_correctness")
_AMOUNTS = ("cost_per_call", "cost_per_day", "cost_per_month")


@blueprint.get("")
@at_least("viewer")
def show(visit: Visit) -> Answer:
    """Show how the judge is doing, and the form that sets it; with `days`, what is there of earlier answers."""
    try:
        earlier = _earlier(visit) if "days" in request.args else None
    except RefusedError as error:
        return _page(visit, error)
    return _page(visit, earlier=earlier)


@blueprint.post("")
@at_least("admin")
def save(visit: Visit) -> Answer:
    """Set the judge."""
    try:
        given = load(schema.SETTINGS, _sent())
        is_changed = judges.change(
            visit.connection, visit.project, given, runtime().settings, actor=visit.actor
        )
    except RefusedError as error:
        return _page(visit, error)
    return _back(visit, "judge_saved" if is_changed else "as_before")


@blueprint.post("/earlier")
@at_least("admin")
def queue_earlier(visit: Visit) -> Answer:
    """Have failing answers of the last days judged, too."""
    try:
        days = _days(request.form)
        judges.queue_earlier(visit.connection, visit.project, days=days, actor=visit.actor)
    except RefusedError as error:
        return _page(visit, error)
    return _back(visit, "earlier_queued")


@blueprint.post("/calls/<call_id>/settle")
@at_least("admin")
def settle(visit: Visit, call_id: str) -> Answer:
    """Say what became of a call whose outcome is unknown."""
    reply = request.form.get("reply", "")
    has_come = bool(reply.strip()) or "is_empty" in request.form
    content = {"reply": reply if has_come else None, "reason": request.form.get("reason", "")}
    try:
        given = load(schema.SETTLEMENT, content)
        judges.settle(visit.connection, visit.project, call_id, given, actor=visit.actor)
    except RefusedError as error:
        return _page(visit, error)
    return _back(visit, "call_settled")


def _sent() -> dict[str, Any]:
    form = request.form
    sent: dict[str, Any] = {
        "is_on": "is_on" in form,
        "url": form.get("url", "").strip(),
        "model": form.get("model", ""),
        "answers": form.get("answers", ""),
        **{name: filters.whole_number(form.get(name, "")) for name in _NUMBERS},
        **{name: filters.decimal_number(form.get(name, "")) for name in _AMOUNTS},
    }
    if "remove_key" in form:
        sent["key"] = None
    elif key := form.get("key", "").strip():
        sent["key"] = key
    return sent


def _days(given: Mapping[str, str]) -> int:
    days = {"days": filters.whole_number(given.get("days", ""))}
    return int(load(schema.EARLIER, days)["days"])


def _earlier(visit: Visit) -> dict[str, Any]:
    days = _days(request.args)
    found = judges.count_earlier(visit.connection, visit.project, days=days)
    return {"days": days, "found": found}


def _page(
    visit: Visit, fault: RefusedError | None = None, earlier: dict[str, Any] | None = None
) -> Answer:
    standing = judges.standing(visit.connection, visit.project.pk)
    # What was typed comes back, but for the key.
    is_form = fault is not None and "url" in request.form
    shown = (
        {**request.form, "is_on": "is_on" in request.form} if is_form else _shown(standing.settings)
    )
    return render(
        "judge.html",
        200 if fault is None else fault.status,
        standing=standing,
        judge=standing.settings,
        shown=shown,
        state=STATES.get(standing.why_not or "", "on"),
        answers=ANSWERS,
        labels=LABELS,
        is_key_lost=is_form and bool(request.form.get("key", "").strip()),
        has_secret_key=bool(runtime().settings.secret_key),
        private_judges=runtime().settings.private_judges,
        limits=schema,
        amount=money.amount,
        largest_amount=money.LARGEST,
        in_words=judges.in_words,
        most_waiting=judge_work.MAX_WAITING,
        most_earlier=judge_work.MAX_EARLIER,
        earlier=earlier,
        fault=fault,
    )


def _shown(settings: JudgeSettings | None) -> dict[str, Any]:
    if settings is None:
        return dict(schema.USUAL)
    return dict(schema.SETTINGS.dump(settings))


def _back(visit: Visit, said: str) -> Answer:
    return redirect(url_for(".show", project_id=visit.project.project_id, said=said), 303)

"""The audit log: what people and admin keys have done to the project."""

from collections.abc import Mapping
from typing import Any

from flask import Blueprint

from mesedi_server.pages import filters
from mesedi_server.pages.access import Answer, Visit, at_least
from mesedi_server.pages.layout import render
from mesedi_server.pages.wording import isolated
from mesedi_server.store import audit_log

blueprint = Blueprint("audit", __name__, url_prefix="/p/<project_id>/settings/audit-log")

ROWS = 50
"""Lines on a page."""

_ACTIONS = {
    "answer.labelled": "Labelled an answer",
    "execution.halted": "Halted an execution",
    "group.acknowledged": "Acknowledged a group",
    "group.ignored": "Ignored a group",
    "group.over_strict": "Marked an evaluator as over-strict",
    "group.over_strict_taken_back": "Took an over-strict mark back",
    "group.reopened": "Opened a group again",
    "group.resolved": "Resolved a group",
    "judge.changed": "Changed the judge",
    "judge.call_settled": "Settled a judge call",
    "judge.earlier_queued": "Had earlier answers judged",
    "key.created": "Created an API key",
    "key.revoked": "Revoked an API key",
    "key.rotated": "Rotated an API key",
    "member.added": "Added a member",
    "member.link_made": "Made a sign-in link",
    "member.removed": "Removed a member",
    "member.role_changed": "Changed a member's role",
    "project.changed": "Changed the project's settings",
    "threshold.changed": "Changed a threshold",
    "threshold.reset": "Returned a threshold to its default",
}


@blueprint.get("")
@at_least("admin")
def index(visit: Visit) -> Answer:
    """List what was done, the newest first."""
    page = audit_log.list_page(visit.connection, visit.project.pk, filters.paging(ROWS))
    return render("audit.html", page=page, did=did, told=told, same_page=filters.same_page)


def did(action: str) -> str:
    """Say what an action was."""
    return _ACTIONS.get(action, action)


def told(details: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Write the details of a line, a name and a value each."""
    return [(name.replace("_", " "), _written(value)) for name, value in details.items()]


def _written(value: Any) -> str:
    if isinstance(value, Mapping) and value.keys() == {"from", "to"}:
        return f"{_written(value['from'])} \N{RIGHTWARDS ARROW} {_written(value['to'])}"
    if isinstance(value, Mapping):
        return ", ".join(f"{isolated(key)} {_written(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(_written(item) for item in value)
    return "none" if value is None else isolated(str(value))

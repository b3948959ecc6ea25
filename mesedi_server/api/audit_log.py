"""`/audit-log`: what people and admin keys have done to the project."""

from typing import Any

from flask import Blueprint, Response

from mesedi_server.api import queries
from mesedi_server.api.access import holder, scope
from mesedi_server.api.answers import answer
from mesedi_server.runtime import runtime
from mesedi_server.store import audit_log
from mesedi_server.store.audit_log import AuditLine

blueprint = Blueprint("audit_log", __name__, url_prefix="/audit-log")


@blueprint.get("")
@scope("admin")
def list_lines() -> Response:
    """List what was done, the newest first."""
    paging = queries.paging(queries.read(queries.PAGE))
    with runtime().database.transaction() as connection:
        page = audit_log.list_page(connection, holder().project.pk, paging)
    rows = [_shown(line) for line in page.items]
    return answer(queries.page_answer("events", rows, paging, page.next_cursor))


def _shown(line: AuditLine) -> dict[str, Any]:
    return {
        "at": line.at,
        "actor": line.actor,
        "action": line.action,
        "subject": line.subject,
        "details": line.details,
    }

"""`/executions`: what clients say of their runs, and what is known of them."""

from typing import Any

import msgspec
from flask import Blueprint, Response, request

from mesedi_server.api import bodies, queries
from mesedi_server.api.access import holder, scope
from mesedi_server.api.answers import answer
from mesedi_server.errors import RefusedError
from mesedi_server.runtime import runtime
from mesedi_server.schemas.bodies import load, read_object
from mesedi_server.schemas.executions import (
    EXECUTION_CHANGE,
    NEW_EXECUTION,
    TERMINAL,
    check_id,
)
from mesedi_server.store import executions, failure_groups
from mesedi_server.store.executions import Execution, ExecutionFilter

blueprint = Blueprint("executions", __name__)

MAX_EVENTS = 10_000
"""Events that `GET /executions/{id}` shows; it says if there are more."""


@blueprint.post("/executions")
@scope("ingest")
def post_execution() -> Response:
    """Take a new execution; any status is taken, and a repeated one changes nothing."""
    facts = load(NEW_EXECUTION, read_object(bodies.read(request), is_finite=True))
    project = holder().project
    if facts.pop("project_id", None) not in (None, "", project.project_id):
        raise RefusedError("project_id is not this key's project", 403)
    with runtime().database.statement() as connection:
        status = executions.post(connection, project.pk, facts)
    return answer({"ok": True, "execution_id": facts["execution_id"], "status": status})


@blueprint.patch("/executions/<path:execution_id>")
@scope("ingest")
def patch_execution(execution_id: str) -> Response:
    """Take what has become of an execution; the first terminal status closes it."""
    check_id(execution_id)
    facts = load(EXECUTION_CHANGE, read_object(bodies.read(request), is_finite=True))
    state = runtime()
    with state.database.statement() as connection:
        status = executions.patch(connection, holder().project.pk, execution_id, facts)
    if status in TERMINAL:
        state.waker.wake()
    return answer({"ok": True, "execution_id": execution_id, "status": status})


@blueprint.get("/executions")
@scope("read")
def list_executions() -> Response:
    """List executions, newest start first."""
    query = queries.read(queries.EXECUTIONS)
    paging = queries.paging(query)
    wanted = ExecutionFilter(**query)
    project = holder().project
    with runtime().database.transaction() as connection:
        page = executions.list_page(connection, project.pk, wanted, paging)
    rows = [shown(execution, project.project_id) for execution in page.items]
    return answer(queries.page_answer("executions", rows, paging, page.next_cursor))


@blueprint.get("/executions/<path:execution_id>")
@scope("read")
def get_execution(execution_id: str) -> Response:
    """Show an execution with its events, its groups, and what the cap of findings cut."""
    project = holder().project
    with runtime().database.transaction() as connection:
        execution = executions.get(connection, project.pk, execution_id)
        events = executions.events_of(connection, execution.pk, MAX_EVENTS + 1)
        groups = failure_groups.of_execution(connection, execution.pk)
    content: dict[str, Any] = {
        "ok": True,
        "execution": shown(execution, project.project_id),
        "events": events[:MAX_EVENTS],
        "has_more_events": len(events) > MAX_EVENTS,
        "failure_groups": groups,
    }
    if groups:
        content["failure_group"] = groups[0]
    return answer(content)


def shown(execution: Execution, project_id: str) -> dict[str, Any]:
    """Give an execution the form that the API answers."""
    fields: dict[str, Any] = msgspec.structs.asdict(execution)
    del fields["pk"]
    return {
        **fields,
        "project_id": project_id,
        "overflow_signatures": fields["overflow_signatures"] or [],
    }

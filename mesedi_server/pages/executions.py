"""The list of executions, and an execution's own page."""

from flask import Blueprint, request

from mesedi_server.pages import addresses, evidence, filters
from mesedi_server.pages.access import Answer, Visit, at_least
from mesedi_server.pages.layout import render
from mesedi_server.schemas.executions import OPEN, TERMINAL
from mesedi_server.schemas.lenient_json import storable
from mesedi_server.store import executions, failure_groups, labels, rollups

blueprint = Blueprint("executions", __name__, url_prefix="/p/<project_id>")

ROWS = 50
"""Executions on a page of the list."""
EVENTS = 100
"""Events on a page of a timeline."""
PAYLOAD_CHARS = 3000
"""Characters of a payload that a timeline shows."""
PAIRS = 200
"""Pairs whose scores a page shows."""

FILTERS = ("q", "status", "evaluator", "metric", "release", "environment")
STATUSES = sorted(OPEN | TERMINAL)


@blueprint.get("/executions")
@at_least("viewer")
def index(visit: Visit) -> Answer:
    """List the executions, newest start first."""
    paging, wanted = filters.paging(ROWS), filters.executions()
    return render(
        "executions.html",
        page=executions.search_page(visit.connection, visit.project.pk, wanted, paging),
        searched=executions.SEARCHED,
        filters=filters.given(*FILTERS),
        statuses=STATUSES,
        same_page=filters.same_page,
    )


@blueprint.get("/executions/<path:execution_id>")
@blueprint.get("/execution")
@at_least("viewer")
def show(visit: Visit, execution_id: str | None = None) -> Answer:
    """Show an execution: what is known of it, its groups, what it answered, its scores, its events."""
    if execution_id is None:
        execution_id = storable(request.args.get("id", ""))
    execution = executions.get(visit.connection, visit.project.pk, execution_id)
    offset = filters.offset()
    events = executions.timeline(
        visit.connection,
        execution.pk,
        offset=offset,
        limit=EVENTS + 1,
        payload_chars=PAYLOAD_CHARS,
    )
    pairs = rollups.of_execution(visit.connection, execution.pk)
    return render(
        "execution.html",
        execution=execution,
        groups=failure_groups.of_execution(visit.connection, execution.pk),
        answers=evidence.of_execution(visit.connection, execution.pk),
        labels=labels.last_of(visit.connection, [execution.pk]),
        here_again=addresses.of_request(request),
        pairs=pairs[:PAIRS],
        pairs_left_out=len(pairs[PAIRS:]),
        events=events[:EVENTS],
        offset=offset,
        next_offset=offset + EVENTS if len(events) > EVENTS else None,
        same_page=filters.same_page,
    )

"""The list of failure groups, and a group's own page."""

from dataclasses import replace
from datetime import UTC, datetime

from flask import Blueprint, redirect, request, url_for

from detectors import DETECTORS, grounding_failure
from mesedi_server import examination
from mesedi_server.errors import RefusedError
from mesedi_server.pages import filters
from mesedi_server.pages.access import Answer, Visit, at_least
from mesedi_server.pages.layout import render
from mesedi_server.pages.playbooks import playbook
from mesedi_server.runtime import runtime
from mesedi_server.schemas import group_states
from mesedi_server.schemas.bodies import load
from mesedi_server.store import executions, failure_groups
from mesedi_server.store.failure_groups import (
    DISCOVERY_INTERACTIONS,
    State,
    StateChange,
)
from mesedi_server.store.paging import Paging

blueprint = Blueprint("groups", __name__, url_prefix="/p/<project_id>/groups")

ROWS = 50
"""Groups on a page of the list."""
MEMBERS = 20
"""Executions on a group's page."""

CLASSES = sorted({*examination.CLASSES, *DETECTORS})
FILTERS = ("q", "class", "evaluator", "metric", "release", "environment")

_STATES: dict[str, State] = {
    "acknowledge": "acknowledged",
    "resolve": "resolved",
    "reopen": "open",
    "ignore": "ignored",
}


@blueprint.get("")
@at_least("viewer")
def index(visit: Visit) -> Answer:
    """List the groups, last seen first."""
    paging = filters.paging(ROWS)
    page = failure_groups.list_page(visit.connection, visit.project.pk, filters.groups(), paging)
    return render(
        "groups.html",
        page=page,
        has_sent=executions.has_any(visit.connection, visit.project.pk),
        state=filters.text("state"),
        filters=filters.given(*FILTERS),
        classes=CLASSES,
        same_page=filters.same_page,
        server=runtime().settings.public_url or request.host_url.rstrip("/"),
    )


@blueprint.get("/<group_id>")
@at_least("viewer")
def show(visit: Visit, group_id: str) -> Answer:
    """Show what fails, whether it is worth looking at, what to do, and which executions."""
    return _page(visit, group_id)


@blueprint.post("/<group_id>/state")
@at_least("member")
def change_state(visit: Visit, group_id: str) -> Answer:
    """Put the group into another state."""
    try:
        change = _wanted_state(visit)
    except RefusedError as error:
        return _page(visit, group_id, error)
    failure_groups.change_state(visit.connection, visit.project.pk, group_id, change)
    return _back(visit, group_id)


@blueprint.post("/<group_id>/over-strict")
@at_least("member")
def change_over_strict(visit: Visit, group_id: str) -> Answer:
    """Say that the evaluator is at fault, or take it back."""
    change = (
        failure_groups.take_back_over_strict
        if request.form.get("action") == "take_back"
        else failure_groups.mark_over_strict
    )
    note = group_states.clean(request.form.get("note"))
    change(visit.connection, visit.project.pk, group_id, actor=visit.actor, note=note)
    return _back(visit, group_id)


def _page(visit: Visit, group_id: str, fault: RefusedError | None = None) -> Answer:
    group = failure_groups.get(visit.connection, visit.project.pk, group_id)
    paging = filters.paging(MEMBERS)
    members = failure_groups.members_page(visit.connection, group.pk, paging)
    latest = members
    if paging.cursor is not None:
        latest = failure_groups.members_page(visit.connection, group.pk, Paging(1))
    return render(
        "group.html",
        200 if fault is None else fault.status,
        group=group,
        latest=latest.items[0] if latest.items else None,
        members=members,
        history=failure_groups.history(visit.connection, group.pk),
        playbook=playbook(group.failure_class),
        discovery_interactions=DISCOVERY_INTERACTIONS,
        is_out_of_range=any(one.evidence.get("raw_out_of_range") for one in members.items),
        is_of_scores=group.failure_class == grounding_failure.NAME,
        is_tunable=group.failure_class in DETECTORS,
        fault=fault,
        entered=request.form,
    )


def _wanted_state(visit: Visit) -> StateChange:
    form = request.form
    state = _STATES.get(form.get("action", ""))
    if state is None:
        raise RefusedError("choose what is to become of the group")
    reason = group_states.clean(form.get("reason"))
    change = StateChange(state=state, actor=visit.actor, reason=reason)
    return change if state != "ignored" else _with_end(change)


def _with_end(change: StateChange) -> StateChange:
    """Add when the ignore is over, if the form says so.

    Raises:
        RefusedError: what should be a time or a number is none, or the time has passed.
    """
    values = load(
        group_states.IGNORE,
        {
            "until": request.form.get("until") or None,
            "occurrences": filters.whole_number(request.form.get("occurrences", "")),
        },
    )
    until: datetime | None = values["until"]
    if until is not None and until <= datetime.now(UTC):
        raise RefusedError("until: this time has passed; times are UTC")
    return replace(change, ignored_until=until, ignored_for=values["occurrences"])


def _back(visit: Visit, group_id: str) -> Answer:
    address = url_for(
        ".show", project_id=visit.project.project_id, group_id=group_id, said="marked"
    )
    return redirect(address, 303)

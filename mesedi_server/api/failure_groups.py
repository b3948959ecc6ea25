"""`/failure-groups`: what fails, which executions, and the states that people put groups in."""

from typing import Any

import msgspec
from flask import Blueprint, Response, request

from evaluators.counting import counted
from mesedi_server.api import bodies, queries
from mesedi_server.api.access import holder, scope
from mesedi_server.api.answers import answer
from mesedi_server.runtime import runtime
from mesedi_server.schemas import group_states
from mesedi_server.store import failure_groups
from mesedi_server.store.failure_groups import (
    DISCOVERY_INTERACTIONS,
    FailureGroup,
    GroupFilter,
    StateChange,
)

blueprint = Blueprint("failure_groups", __name__, url_prefix="/failure-groups")


@blueprint.get("")
@scope("read")
def list_groups() -> Response:
    """List groups, last seen first; without `state`, those that are open or acknowledged."""
    query = queries.read(queries.FAILURE_GROUPS)
    paging = queries.paging(query)
    is_empty_shown = query.get("state") == "all"
    states = queries.states(query)
    wanted = GroupFilter(states=states, is_empty_shown=is_empty_shown, **query)
    project = holder().project
    with runtime().database.transaction() as connection:
        page = failure_groups.list_page(connection, project.pk, wanted, paging)
    rows = [shown(group, project.project_id) for group in page.items]
    return answer(queries.page_answer("failure_groups", rows, paging, page.next_cursor))


@blueprint.get("/<group_id>")
@scope("read")
def get_group(group_id: str) -> Response:
    """Show one group."""
    project = holder().project
    with runtime().database.transaction() as connection:
        group = failure_groups.get(connection, project.pk, group_id)
    return answer(shown(group, project.project_id))


@blueprint.get("/<group_id>/executions")
@scope("read")
def list_members(group_id: str) -> Response:
    """List a group's executions with the evidence of each, the latest first."""
    paging = queries.paging(queries.read(queries.PAGE))
    with runtime().database.transaction() as connection:
        group = failure_groups.get(connection, holder().project.pk, group_id)
        page = failure_groups.members_page(connection, group.pk, paging)
    rows = [_without_pk(member, "execution_pk") for member in page.items]
    content = queries.page_answer("executions", rows, paging, page.next_cursor)
    return answer({**content, "group_id": group_id})


@blueprint.get("/<group_id>/history")
@scope("read")
def list_history(group_id: str) -> Response:
    """List what happened to a group, the newest first."""
    with runtime().database.transaction() as connection:
        group = failure_groups.get(connection, holder().project.pk, group_id)
        lines = failure_groups.history(connection, group.pk)
    return answer({"ok": True, "group_id": group_id, "history": lines, "count": len(lines)})


@blueprint.post("/<group_id>/resolve")
@scope("admin")
def resolve(group_id: str) -> Response:
    """Say that the failure is mended; a new member reopens the group as a regression."""
    return _put(group_id, StateChange(state="resolved", actor=_actor(), reason=_reason()))


@blueprint.post("/<group_id>/unresolve")
@scope("admin")
def unresolve(group_id: str) -> Response:
    """Open a group again, whatever its state."""
    return _put(group_id, StateChange(state="open", actor=_actor(), reason=_reason()))


@blueprint.post("/<group_id>/acknowledge")
@scope("admin")
def acknowledge(group_id: str) -> Response:
    """Say that somebody is at it."""
    return _put(group_id, StateChange(state="acknowledged", actor=_actor(), reason=_reason()))


@blueprint.post("/<group_id>/ignore")
@scope("admin")
def ignore(group_id: str) -> Response:
    """Keep a group quiet: for good, `until` a time, or for a number of new `occurrences`."""
    values = group_states.read(group_states.IGNORE, bodies.read(request))
    change = StateChange(
        state="ignored",
        actor=_actor(),
        reason=values["reason"],
        ignored_until=values["until"],
        ignored_for=values["occurrences"],
    )
    return _put(group_id, change)


@blueprint.post("/<group_id>/over-strict")
@scope("admin")
def over_strict(group_id: str) -> Response:
    """Say that the evaluator is at fault, or with `"over_strict": false` take it back."""
    values = group_states.read(group_states.OVER_STRICT, bodies.read(request))
    change = (
        failure_groups.mark_over_strict
        if values["over_strict"]
        else failure_groups.take_back_over_strict
    )
    project = holder().project
    with runtime().database.transaction() as connection:
        group = change(connection, project.pk, group_id, actor=_actor(), note=values["reason"])
    return _state_answer(group)


def shown(group: FailureGroup, project_id: str) -> dict[str, Any]:
    """Give a group the form that the API answers: the reference's fields, and ours beside them."""
    is_resolved = group.state == "resolved"
    return {
        **_without_pk(group, "pk"),
        "project_id": project_id,
        "first_seen": group.first_seen_at,
        "last_seen": group.last_seen_at,
        "event_count": group.occurrence_count,
        "affected_executions": group.occurrence_count,
        "severity_hint": group.severity,
        "resolved_at": group.state_changed_at if is_resolved else None,
        "resolved_by": group.state_changed_by if is_resolved else None,
        "is_discovery": group.is_discovery,
        "discovery_reason": _discovery_reason(group),
    }


def _discovery_reason(group: FailureGroup) -> str | None:
    if not group.is_discovery:
        return None
    return (
        f"{counted(group.interactions, 'interaction carries', 'interactions carry')}"
        " this evaluator and metric so far;"
        f" wait for {DISCOVERY_INTERACTIONS} before calling it a regression"
    )


def _put(group_id: str, change: StateChange) -> Response:
    with runtime().database.transaction() as connection:
        group = failure_groups.change_state(connection, holder().project.pk, group_id, change)
    return _state_answer(group)


def _state_answer(group: FailureGroup) -> Response:
    return answer(
        {
            "ok": True,
            "group_id": group.group_id,
            "state": group.state,
            "resolved": group.state == "resolved",
            "over_strict": group.over_strict_at is not None,
        }
    )


def _actor() -> str:
    return holder().actor


def _reason() -> str | None:
    return group_states.read_reason(bodies.read(request))


def _without_pk(row: msgspec.Struct, name: str) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.structs.asdict(row)
    del fields[name]
    return fields

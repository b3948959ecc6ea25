"""What people do to failure groups: states, one or many at once, with a way back; over-strict marks; comments."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from flask import Blueprint, redirect, request, url_for

from mesedi_server.errors import RefusedError
from mesedi_server.pages import addresses, filters, groups, times
from mesedi_server.pages.access import Answer, Visit, at_least
from mesedi_server.pages.layout import render
from mesedi_server.schemas import group_states
from mesedi_server.schemas.bodies import load
from mesedi_server.store import failure_groups, group_changes
from mesedi_server.store.failure_groups import State, StateChange

blueprint = Blueprint("group_actions", __name__, url_prefix="/p/<project_id>/groups")

MOST_SELECTED = 200
"""Groups that one change may have."""
MAX_COMMENT_BYTES = 4_000
"""Bytes of a comment; the rest is cut."""


@dataclass(frozen=True, slots=True)
class Action:
    """Something that a button does to a group."""

    state: State
    title: str


ACTIONS = {
    "acknowledge": Action("acknowledged", "Acknowledge"),
    "resolve": Action("resolved", "Resolve"),
    "reopen": Action("open", "Open again"),
    "ignore": Action("ignored", "Ignore"),
}


@blueprint.post("/<group_id>/state")
@at_least("member")
def change_state(visit: Visit, group_id: str) -> Answer:
    """Put the group into another state."""
    try:
        change = _wanted(visit)
    except RefusedError as error:
        return groups.page(visit, group_id, error)
    made = group_changes.make(visit.connection, visit.project.pk, [group_id], change)
    return _to_group(visit, group_id, said="marked", change=made.change_id)


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
    return _to_group(visit, group_id, said="marked")


@blueprint.post("/<group_id>/comments")
@at_least("member")
def comment(visit: Visit, group_id: str) -> Answer:
    """Keep what somebody says of the group."""
    text = group_states.clean(request.form.get("comment"), MAX_COMMENT_BYTES)
    if text is None:
        return groups.page(visit, group_id, RefusedError("the comment is empty"))
    failure_groups.comment(
        visit.connection, visit.project.pk, group_id, actor=visit.actor, text=text
    )
    return _to_group(visit, group_id, "history", said="commented")


@blueprint.post("/selected")
@at_least("member")
def confirm(visit: Visit) -> Answer:
    """Show which groups are about to be changed, and how many; nothing is changed yet."""
    return _confirmation(visit)


@blueprint.post("/change")
@at_least("member")
def change_selected(visit: Visit) -> Answer:
    """Change the groups that somebody has seen and confirmed."""
    try:
        ids, change = _confirmed(), _wanted(visit)
    except RefusedError as error:
        return _confirmation(visit, error)
    made = group_changes.make(visit.connection, visit.project.pk, ids, change)
    return redirect(addresses.with_query(_way_back(visit), change=made.change_id, said=""), 303)


@blueprint.post("/changes/<change_id>/undo")
@at_least("member")
def undo(visit: Visit, change_id: str) -> Answer:
    """Put the groups of a change back into what they were."""
    change = group_changes.find(visit.connection, visit.project.pk, change_id)
    restored = group_changes.undo(visit.connection, visit.project.pk, change_id, actor=visit.actor)
    is_whole = change is not None and restored == change.groups
    said = "undone" if is_whole else "undone_in_part"
    return redirect(addresses.with_query(_way_back(visit), change="", said=said), 303)


def _confirmation(visit: Visit, fault: RefusedError | None = None) -> Answer:
    ids = _selected()
    chosen = failure_groups.some(visit.connection, visit.project.pk, ids)
    return render(
        "groups_change.html",
        200 if fault is None else fault.status,
        groups=chosen,
        action=_action(),
        name=request.form.get("action"),
        way_back=_way_back(visit),
        fault=fault,
        entered=request.form,
    )


def _selected() -> Sequence[str]:
    """Read which groups the form names.

    Raises:
        RefusedError: none, or too many.
    """
    ids = list(dict.fromkeys(request.form.getlist("group")))
    if not ids:
        raise RefusedError("no group is selected; nothing was changed. Go back and select some")
    if len(ids) > MOST_SELECTED:
        raise RefusedError(f"more than {MOST_SELECTED} groups at once; nothing was changed")
    return ids


def _confirmed() -> Sequence[str]:
    """Read which groups were seen and confirmed.

    Raises:
        RefusedError: there are more or fewer than the page said.
    """
    ids = _selected()
    if request.form.get("count") != str(len(ids)):
        raise RefusedError("these are not the groups that you saw; look again, and confirm")
    return ids


def _action() -> Action:
    """Read what is to be done.

    Raises:
        RefusedError: something that groups do not know.
    """
    action = ACTIONS.get(request.form.get("action", ""))
    if action is None:
        raise RefusedError("choose what is to become of the group")
    return action


def _wanted(visit: Visit) -> StateChange:
    reason = group_states.clean(request.form.get("reason"))
    change = StateChange(state=_action().state, actor=visit.actor, reason=reason)
    return change if change.state != "ignored" else _with_end(change)


def _with_end(change: StateChange) -> StateChange:
    """Add when the ignore is over, if the form says so.

    Raises:
        RefusedError: what should be a time or a number is none, or the time has passed.
    """
    values = load(
        group_states.IGNORE,
        {
            "until": times.aware(request.form.get("until", "")) or None,
            "occurrences": filters.whole_number(request.form.get("occurrences", "")),
        },
    )
    return replace(change, ignored_until=values["until"], ignored_for=values["occurrences"])


def _way_back(visit: Visit) -> str:
    """Return the page that the form came from: one of this project's groups."""
    own = url_for("pages.groups.index", project_id=visit.project.project_id)
    given = addresses.own_page(request.form.get("back", "")) or own
    return given if given.startswith(own) else own


def _to_group(visit: Visit, group_id: str, at: str | None = None, **told: str) -> Answer:
    project_id = visit.project.project_id
    address = url_for("pages.groups.show", project_id=project_id, group_id=group_id, _anchor=at)
    return redirect(addresses.with_query(address, **told), 303)

"""The thresholds: what each detector goes by, and the form that changes it, with its preview."""

from typing import Any

from flask import Blueprint, redirect, request, url_for

from detectors import DETECTORS, Detector, grounding_failure
from mesedi_server import preview
from mesedi_server.errors import RefusedError
from mesedi_server.pages import fields, filters, tuning
from mesedi_server.pages.access import Answer, Visit, at_least
from mesedi_server.pages.fields import Field
from mesedi_server.pages.layout import render
from mesedi_server.schemas import thresholds as schema
from mesedi_server.schemas.group_states import clean
from mesedi_server.store import failure_groups, rollups, thresholds
from mesedi_server.store.thresholds import NOTHING_SET, Values

blueprint = Blueprint("thresholds", __name__, url_prefix="/p/<project_id>/thresholds")

SPANS = (7, 30, 90)
"""Days that a preview can look back; the first is the default."""
NAMED = 20
"""Executions and groups that a preview names of each kind; it counts them all."""


@blueprint.get("")
@at_least("viewer")
def index(visit: Visit) -> Answer:
    """List the detectors with the values in force."""
    settings = thresholds.all_in_force(visit.connection, [visit.project.pk])
    detectors = [
        (detector, settings.get((visit.project.pk, name), NOTHING_SET).values)
        for name, detector in DETECTORS.items()
    ]
    return render("thresholds.html", detectors=detectors)


@blueprint.get("/<detector>")
@at_least("viewer")
def show(visit: Visit, detector: str) -> Answer:
    """Show a detector's form and its history; `pair` and `floor` of the address are filled in, for a preview."""
    found, values = _found(visit, detector)
    suggested = tuning.suggested(found, values.values, request.args)
    shown = fields.filled(found, values.values if suggested is None else suggested)
    return _page(visit, found, values, shown, is_suggestion=suggested is not None)


@blueprint.post("/<detector>/preview")
@at_least("viewer")
def show_preview(visit: Visit, detector: str) -> Answer:
    """Show what the form's values would have done to the last days; nothing is changed."""
    found, values = _found(visit, detector)
    sent = fields.sent(found, request.form)
    try:
        wanted, days = tuning.wanted(sent), _days()
        seen = preview.of_change(visit.connection, visit.project, detector, wanted, days)
    except RefusedError as error:
        return _page(visit, found, values, sent, fault=error)
    turned = seen.groups_opening[:NAMED] + seen.groups_falling_silent[:NAMED]
    known = failure_groups.known(
        visit.connection, visit.project.pk, [group.group_id for group in turned]
    )
    return _page(visit, found, values, sent, seen=seen, known_groups=known)


@blueprint.post("/<detector>")
@at_least("member")
def save(visit: Visit, detector: str) -> Answer:
    """Set what the form changes; each changed knob is a line of the history."""
    found, values = _found(visit, detector)
    sent = fields.sent(found, request.form)
    try:
        changes = tuning.changes(found, values, tuning.wanted(sent))
        tuning.check_version(values, request.form.get("version", ""))
    except RefusedError as error:
        return _page(visit, found, values, sent, fault=error)
    tuning.keep(visit, detector, values, changes, clean(request.form.get("reason")))
    return _back(visit, detector, changes)


@blueprint.post("/<detector>/return")
@at_least("member")
def go_back(visit: Visit, detector: str) -> Answer:
    """Return a knob to its value of an earlier version, or with version 0 to its default."""
    found, values = _found(visit, detector)
    knob = schema.knob(detector, request.form.get("key", ""))
    version = filters.whole_number(request.form.get("version", ""))
    if not isinstance(version, int):
        raise RefusedError("version: not a number")
    earlier = tuning.earlier_value(visit, detector, knob, version) if version else None
    changes = tuning.changes(found, values, {knob.name: earlier})
    reason = f"back to version {version}" if version else "back to the default"
    tuning.keep(visit, detector, values, changes, reason)
    return _back(visit, detector, changes)


def _found(visit: Visit, detector: str) -> tuple[Detector, Values]:
    found = schema.detector(detector)
    return found, thresholds.in_force(visit.connection, visit.project.pk, detector)


def _page(
    visit: Visit,
    detector: Detector,
    values: Values,
    shown: list[Field],
    *,
    fault: RefusedError | None = None,
    is_suggestion: bool = False,
    **preview: Any,
) -> Answer:
    project_pk = visit.project.pk
    history = thresholds.history_of_detector(visit.connection, project_pk, detector.name)
    return render(
        "detector.html",
        200 if fault is None else fault.status,
        detector=detector,
        values=values,
        fields=shown,
        pairs=rollups.pairs_of_project(visit.connection, project_pk),
        history=history,
        newest={key: change.version for key, change in reversed(history)},
        fault=fault,
        is_suggestion=is_suggestion,
        entered=request.form,
        has_preview=detector.name == grounding_failure.NAME,
        spans=SPANS,
        named=NAMED,
        open_rows=fields.OPEN_ROWS,
        listed_rows=fields.LISTED_ROWS,
        **preview,
    )


def _days() -> int:
    """Read how far back a preview looks.

    Raises:
        RefusedError: not one of the spans.
    """
    days = filters.whole_number(request.form.get("days", str(SPANS[0])))
    if days not in SPANS:
        raise RefusedError(f"days: one of {', '.join(map(str, SPANS))}")
    return int(days)


def _back(visit: Visit, detector: str, changes: dict[str, Any]) -> Answer:
    said = "saved" if changes else "unchanged"
    project_id = visit.project.project_id
    return redirect(url_for(".show", project_id=project_id, detector=detector, said=said), 303)

"""A project's settings: name, time zone, trace links, how long executions are kept, which answers are assessed."""

from typing import Any

from flask import Blueprint, redirect, request, url_for

from mesedi_server.errors import RefusedError
from mesedi_server.pages import filters
from mesedi_server.pages.access import Answer, Visit, at_least
from mesedi_server.pages.layout import render
from mesedi_server.schemas import projects as schema
from mesedi_server.schemas.bodies import load
from mesedi_server.store import projects

LABELS = {
    "name": "Name",
    "time_zone": "Time zone",
    "trace_url_template": "Address of a trace",
    "retention_days": "Keep executions for so many days",
}
"""What the page calls the fields of its form."""

blueprint = Blueprint("settings", __name__, url_prefix="/p/<project_id>/settings")


@blueprint.get("")
@at_least("viewer")
def show(visit: Visit) -> Answer:
    """Show the settings, and the form that changes them."""
    project = visit.project
    shown = {
        "name": project.name,
        "time_zone": project.time_zone,
        "trace_url_template": project.trace_url_template or "",
        "retention_days": project.retention_days or "",
        "assesses_all": project.assesses_all,
    }
    return _page(shown)


@blueprint.post("")
@at_least("admin")
def save(visit: Visit) -> Answer:
    """Change the settings."""
    form = request.form
    try:
        wanted = load(
            schema.SETTINGS,
            {
                "name": form.get("name", ""),
                "time_zone": form.get("time_zone", ""),
                "trace_url_template": form.get("trace_url_template", "").strip() or None,
                "retention_days": filters.whole_number(form.get("retention_days", "")),
                "assesses_all": "assesses_all" in form,
            },
        )
        is_changed = projects.change(visit.connection, visit.project.pk, wanted, actor=visit.actor)
    except RefusedError as error:
        return _page(form, error)
    said = "settings_saved" if is_changed else "as_before"
    return redirect(url_for(".show", project_id=visit.project.project_id, said=said), 303)


def _page(shown: Any, fault: RefusedError | None = None) -> Answer:
    return render(
        "settings.html",
        200 if fault is None else fault.status,
        shown=shown,
        zones=schema.ZONES,
        placeholder=schema.PLACEHOLDER,
        longest_name=schema.MAX_NAME,
        most_days=schema.MAX_RETENTION_DAYS,
        labels=LABELS,
        fault=fault,
    )

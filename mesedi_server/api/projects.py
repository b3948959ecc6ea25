"""`/me` and `/project`: whom a key speaks for, and the project's settings (wire.md 1.9)."""

from typing import Any

from flask import Blueprint, Response, request
from marshmallow import Schema

from mesedi_server.api import bodies
from mesedi_server.api.access import holder, scope
from mesedi_server.api.answers import answer
from mesedi_server.runtime import runtime
from mesedi_server.schemas import api_keys as key_schema
from mesedi_server.schemas import projects as schema
from mesedi_server.schemas.bodies import load, read_object
from mesedi_server.store import projects
from mesedi_server.store.projects import Project

blueprint = Blueprint("projects", __name__)


@blueprint.get("/me")
@scope("read")
def get_me() -> Response:
    """Show the key that asks, and its project."""
    who = holder()
    return answer(
        {
            "ok": True,
            "key_id": who.key_id,
            "scopes": sorted(who.scopes),
            "role": key_schema.role(sorted(who.scopes)),
            "expires_at": who.expires_at,
            "project_id": who.project.project_id,
            "project_name": who.project.name,
        }
    )


@blueprint.get("/project")
@scope("read")
def get_project() -> Response:
    """Show the project's settings."""
    with runtime().database.transaction() as connection:
        project = projects.get(connection, holder().project.pk)
    return answer({"ok": True, **_shown(project)})


@blueprint.patch("/project/name")
@scope("admin")
def rename_project() -> Response:
    """Call the project something else."""
    return _changed(schema.NAME)


@blueprint.put("/project/assesses-all")
@scope("admin")
def assess_all() -> Response:
    """Assess every answer, or the failing ones alone."""
    return _changed(schema.ASSESSING)


def _changed(of: Schema) -> Response:
    """Change what the body says of the project, and show it."""
    given = load(of, read_object(bodies.read(request)))
    who = holder()
    with runtime().database.transaction() as connection:
        projects.change(connection, who.project.pk, given, actor=who.actor)
        project = projects.get(connection, who.project.pk)
    return answer({"ok": True, **_shown(project)})


def _shown(project: Project) -> dict[str, Any]:
    return {
        "project_id": project.project_id,
        "name": project.name,
        "time_zone": project.time_zone,
        "trace_url_template": project.trace_url_template,
        "retention_days": project.retention_days,
        "assesses_all": project.assesses_all,
    }

"""A project's API keys: create, rotate, revoke. A key is shown once, on the page that answers its form."""

from datetime import UTC, datetime, timedelta

from flask import Blueprint, redirect, request, url_for

from mesedi_server.errors import RefusedError
from mesedi_server.pages import addresses
from mesedi_server.pages.access import Answer, Visit, at_least
from mesedi_server.pages.layout import render
from mesedi_server.permission import SCOPES
from mesedi_server.runtime import KEY_TRUST_S, runtime
from mesedi_server.schemas import api_keys as schema
from mesedi_server.schemas.bodies import load
from mesedi_server.store import api_keys
from mesedi_server.store.projects import NewKey

blueprint = Blueprint("keys", __name__, url_prefix="/p/<project_id>/settings/keys")

LIFETIMES = {
    "": "never",
    "7": "after 7 days",
    "30": "after 30 days",
    "90": "after 90 days",
    "365": "after a year",
}
"""Days that a new key can live, and how the form says it."""
OVERLAPS = {
    "0": "at once",
    "1": "after an hour",
    "24": "after a day",
    "168": "after a week",
}
"""Hours that a rotated key goes on, and how the form says it."""
USUAL_OVERLAP = "24"


@blueprint.get("")
@at_least("viewer")
def index(visit: Visit) -> Answer:
    """List the keys, and offer to make one."""
    return _page(visit)


@blueprint.post("")
@at_least("admin")
def create(visit: Visit) -> Answer:
    """Make a key, and show it."""
    form = request.form
    try:
        given = load(
            schema.NEW_KEY,
            {
                "name": form.get("name", ""),
                "scopes": form.getlist("scopes"),
                "expires_at": _end(form.get("lifetime", "")),
            },
        )
    except RefusedError as error:
        return _page(visit, fault=error)
    made = api_keys.create(
        visit.connection,
        visit.project,
        schema.scopes(given),
        name=given["name"],
        expires_at=given["expires_at"],
        actor=visit.actor,
    )
    return _page(visit, made=made, can_ingest="ingest" in given["scopes"])


@blueprint.post("/<key_id>/rotate")
@at_least("admin")
def rotate(visit: Visit, key_id: str) -> Answer:
    """Make a key that takes another's place, and show it."""
    hours = request.form.get("overlap", "")
    if hours not in OVERLAPS:
        raise RefusedError(f"overlap: one of {', '.join(OVERLAPS)} hours")
    made = api_keys.rotate(
        visit.connection,
        visit.project,
        key_id,
        overlap=timedelta(hours=int(hours)),
        actor=visit.actor,
    )
    runtime().forget_key(key_id)
    return _page(visit, made=made, rotated=key_id)


@blueprint.post("/<key_id>/revoke")
@at_least("admin")
def revoke(visit: Visit, key_id: str) -> Answer:
    """End a key; the last one too, since who is on this page can make another."""
    api_keys.revoke(visit.connection, visit.project, key_id, actor=visit.actor, is_last_kept=False)
    runtime().forget_key(key_id)
    return redirect(url_for(".index", project_id=visit.project.project_id, said="key_revoked"), 303)


def _page(
    visit: Visit,
    *,
    fault: RefusedError | None = None,
    made: NewKey | None = None,
    can_ingest: bool = False,
    rotated: str | None = None,
) -> Answer:
    keys = api_keys.of_project(visit.connection, visit.project.pk)
    return render(
        "keys.html",
        200 if fault is None else fault.status,
        alive=[key for key in keys if key.is_alive],
        ended=[key for key in keys if not key.is_alive],
        made=made,
        can_ingest=can_ingest,
        rotated=next((key for key in keys if key.key_id == rotated), None),
        scopes=SCOPES,
        chosen=request.form.getlist("scopes") if fault else ["ingest"],
        lifetimes=LIFETIMES,
        overlaps=OVERLAPS,
        usual_overlap=USUAL_OVERLAP,
        longest_name=schema.MAX_NAME,
        trusted_s=int(KEY_TRUST_S),
        server=addresses.server(),
        entered=request.form,
        fault=fault,
    )


def _end(days: str) -> str | None:
    """Tell when a key of so many days ends.

    Raises:
        RefusedError: not one of the lifetimes that the form offers.
    """
    if days not in LIFETIMES:
        raise RefusedError("lifetime: not one that the form offers")
    return (datetime.now(UTC) + timedelta(days=int(days))).isoformat() if days else None

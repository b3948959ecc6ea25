"""`/api-keys`: list, create, revoke (wire.md 1.9). A key is shown whole once, when it is made."""

from typing import Any

from flask import Blueprint, Response, request

from mesedi_server.api import bodies
from mesedi_server.api.access import holder, scope
from mesedi_server.api.answers import answer
from mesedi_server.runtime import runtime
from mesedi_server.schemas import api_keys as schema
from mesedi_server.schemas.bodies import load, read_object
from mesedi_server.store import api_keys
from mesedi_server.store.api_keys import ApiKey

blueprint = Blueprint("api_keys", __name__, url_prefix="/api-keys")

WARNING = "Keep this key now: it is not shown again."


@blueprint.get("")
@scope("read")
def list_keys() -> Response:
    """List the keys that have not been revoked, by what they begin with."""
    project = holder().project
    with runtime().database.transaction() as connection:
        keys = api_keys.of_project(connection, project.pk)
    rows = [_shown(key, project.project_id) for key in keys if key.revoked_at is None]
    return answer({"ok": True, "api_keys": rows, "count": len(rows)})


@blueprint.post("")
@scope("admin")
def create_key() -> Response:
    """Make a key."""
    given = load(schema.NEW_KEY, read_object(bodies.read(request)))
    scopes, who = schema.scopes(given), holder()
    with runtime().database.transaction() as connection:
        made = api_keys.create(
            connection,
            who.project,
            scopes,
            name=given["name"],
            expires_at=given["expires_at"],
            actor=who.actor,
        )
    return answer(
        {
            "ok": True,
            "key_id": made.key_id,
            "raw_key": made.key,
            "prefix": made.prefix,
            "name": given["name"],
            "role": schema.role(scopes),
            "scopes": scopes,
            "expires_at": given["expires_at"],
            "warning": WARNING,
        }
    )


@blueprint.delete("/<key_id>")
@scope("admin")
def delete_key(key_id: str) -> Response:
    """Revoke a key; the last one, and the last one of scope `admin`, stay."""
    who = holder()
    with runtime().database.transaction() as connection:
        key = api_keys.revoke(connection, who.project, key_id, actor=who.actor, is_last_kept=True)
    runtime().forget_key(key_id)
    return answer({"ok": True, "key_id": key_id, "revoked_at": key.revoked_at})


def _shown(key: ApiKey, project_id: str) -> dict[str, Any]:
    return {
        "key_id": key.key_id,
        "project_id": project_id,
        "key_prefix": key.prefix,
        "name": key.name,
        "created_at": key.created_at,
        "last_used_at": key.last_used_at,
        "user_id": key.created_by,
        "scope": ",".join(key.scopes),
        "scopes": key.scopes,
        "expires_at": key.expires_at,
        "role": schema.role(key.scopes),
        "is_expired": not key.is_alive,
    }

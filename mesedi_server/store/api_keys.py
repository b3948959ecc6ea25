"""A project's API keys as its admins see them. What a key itself may do is `projects.key_holder`'s business."""

from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, Select, func, or_, select, update

from mesedi_server.errors import ConflictError, NotFoundError
from mesedi_server.store import audit_log, projects
from mesedi_server.store.database import Connection
from mesedi_server.store.projects import NewKey, Project
from mesedi_server.store.tables import api_keys

MOST_LISTED = 500
"""Keys that a list has, the dead ones last."""

_k = api_keys.c


class ApiKey(Struct, frozen=True, kw_only=True):
    """An API key as it is shown; the key itself is stored nowhere."""

    key_id: str
    name: str
    prefix: str
    scopes: list[str]
    created_at: datetime
    created_by: str | None
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    is_alive: bool


def of_project(connection: Connection, project_pk: int) -> list[ApiKey]:
    """List the keys of a project: those that are good first, then the newest."""
    statement = _keys(project_pk).order_by(_is_alive().desc(), _k.created_at.desc(), _k.pk.desc())
    return _shown(connection, statement.limit(MOST_LISTED))


def create(
    connection: Connection,
    project: Project,
    scopes: list[str],
    *,
    name: str,
    expires_at: datetime | None,
    actor: str,
) -> NewKey:
    """Make a key, and a line in the audit log."""
    made = projects.new_key(
        connection, project, scopes, name=name, expires_at=expires_at, created_by=actor
    )
    details = {"name": name, "scopes": scopes, "expires_at": expires_at}
    audit_log.note(
        connection, project.pk, actor, "key.created", subject=made.key_id, details=details
    )
    return made


def revoke(
    connection: Connection, project: Project, key_id: str, *, actor: str, is_last_kept: bool
) -> ApiKey:
    """End a key at once; one that has ended already stays as it is.

    Args:
        connection: an open transaction.
        project: whose key it is.
        key_id: what clients call the key.
        actor: who does it.
        is_last_kept: refuse where no other key, or no other of scope `admin`, would be left (wire.md 1.9).

    Raises:
        NotFoundError: unknown in this project.
        ConflictError: see `is_last_kept`.
    """
    projects.lock(connection, project.pk)
    key = _get(connection, project.pk, key_id)
    if key.revoked_at is not None:
        return key
    if is_last_kept and key.is_alive:
        _check_others(connection, project.pk, key)
    connection.execute(update(api_keys).where(_k.key_id == key_id).values(revoked_at=func.now()))
    details = {"name": key.name, "scopes": key.scopes}
    audit_log.note(connection, project.pk, actor, "key.revoked", subject=key_id, details=details)
    return _get(connection, project.pk, key_id)


def rotate(
    connection: Connection, project: Project, key_id: str, *, overlap: timedelta, actor: str
) -> NewKey:
    """Make a key that takes another's place; the other one is good for `overlap` more.

    The new key has the name, the scopes and the lifetime of the old one.

    Raises:
        NotFoundError: unknown in this project.
        ConflictError: the key is not good any more.
    """
    projects.lock(connection, project.pk)
    old = _get(connection, project.pk, key_id)
    if not old.is_alive:
        raise ConflictError("this key is not good any more; create a new one instead")
    lifetime = None if old.expires_at is None else old.expires_at - old.created_at
    now: datetime = connection.execute(select(func.now())).scalar_one()
    made = projects.new_key(
        connection,
        project,
        old.scopes,
        name=old.name,
        expires_at=None if lifetime is None else now + lifetime,
        created_by=actor,
    )
    end = now + overlap
    connection.execute(
        update(api_keys)
        .where(_k.key_id == key_id)
        .values(expires_at=func.least(func.coalesce(_k.expires_at, end), end))
    )
    details = {"name": old.name, "scopes": old.scopes, "new_key": made.key_id, "old_until": end}
    audit_log.note(connection, project.pk, actor, "key.rotated", subject=key_id, details=details)
    return made


def _check_others(connection: Connection, project_pk: int, key: ApiKey) -> None:
    others = _shown(connection, _keys(project_pk).where(_k.key_id != key.key_id, _is_alive()))
    if not others:
        raise ConflictError("this is the project's last key")
    if "admin" in key.scopes and not any("admin" in other.scopes for other in others):
        raise ConflictError("this is the project's last key of scope admin")


def _get(connection: Connection, project_pk: int, key_id: str) -> ApiKey:
    found = _shown(connection, _keys(project_pk).where(_k.key_id == key_id))
    if not found:
        raise NotFoundError("API key")
    return found[0]


def _keys(project_pk: int) -> Select[Any]:
    own = [_k[name] for name in ApiKey.__struct_fields__[:-1]]
    return select(*own, _is_alive().label("is_alive")).where(_k.project_pk == project_pk)


def _is_alive() -> ColumnElement[bool]:
    is_in_time = or_(_k.expires_at.is_(None), _k.expires_at > func.now())
    return _k.revoked_at.is_(None) & is_in_time


def _shown(connection: Connection, statement: Select[Any]) -> list[ApiKey]:
    return [ApiKey(**row) for row in connection.execute(statement).mappings()]

"""Projects, and the API keys that speak for them; `api_keys` is what their admins see of the keys."""

import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from mesedi_server.errors import ConflictError, NotFoundError
from mesedi_server.permission import SCOPES
from mesedi_server.store import audit_log
from mesedi_server.store.database import Connection
from mesedi_server.store.digests import digest
from mesedi_server.store.tables import api_keys, projects

KEY_PREFIX = "mesedi_sk_"
"""What every API key begins with; the published SDK insists on it."""

_SHOWN_CHARACTERS = 14


@dataclass(frozen=True, slots=True)
class Project:
    """One tenant."""

    pk: int
    project_id: str
    name: str
    time_zone: str = "UTC"
    """Zone that its pages show times in: a name of the IANA database."""
    counted_zone: str = "UTC"
    """Zone by whose days its counts are; they follow `time_zone` in the background."""
    next_zone: str | None = None
    """Zone that some of its counts have moved to already; None: they are not on the way."""
    trace_url_template: str | None = None
    """Address of an execution's trace, with `{execution_id}` in it."""
    retention_days: int | None = None
    """Days after which executions are deleted; None: never."""
    assesses_all: bool = False
    """Every answer is assessed, not the failing ones alone, and the outcome comes back as scores."""

    @property
    def are_days_moving(self) -> bool:
        """Its zone has changed, and not all counts are by the days of the new one yet."""
        return self.next_zone is not None or self.counted_zone != self.time_zone


PROJECT_COLUMNS = [projects.c[field.name] for field in fields(Project)]
"""What to select to make a `Project` of a row."""


@dataclass(frozen=True, slots=True)
class NewKey:
    """An API key, whole: the only time that anyone sees it."""

    key_id: str
    key: str
    prefix: str


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """Who a request's API key speaks for, and what it may do."""

    project: Project
    key_id: str
    scopes: frozenset[str]
    expires_at: datetime | None

    @property
    def actor(self) -> str:
        """What histories call the key."""
        return f"key {self.key_id}"

    def may(self, scope: str) -> bool:
        """Tell whether the key is good for a scope."""
        return scope in self.scopes or "admin" in self.scopes


def create(connection: Connection, name: str) -> Project:
    """Make a project.

    Raises:
        ConflictError: the name is taken.
    """
    project_id = f"proj-{secrets.token_hex(6)}"
    statement = insert(projects).values(project_id=project_id, name=name).returning(projects.c.pk)
    try:
        return Project(connection.execute(statement).scalar_one(), project_id, name)
    except IntegrityError as error:
        raise ConflictError(f"there is a project {name!r} already") from error


def everyone(connection: Connection) -> list[Project]:
    """List all projects, oldest first."""
    rows = connection.execute(select(*PROJECT_COLUMNS).order_by(projects.c.pk))
    return [Project(*row) for row in rows]


def by_name(connection: Connection, name: str) -> Project:
    """Find a project by its name or id.

    Raises:
        NotFoundError: there is none.
    """
    for project in everyone(connection):
        if name in (project.name, project.project_id):
            return project
    raise NotFoundError(f"project {name!r}")


def get(connection: Connection, project_pk: int) -> Project:
    """Read a project that is there."""
    statement = select(*PROJECT_COLUMNS).where(projects.c.pk == project_pk)
    return Project(*connection.execute(statement).one())


def change(
    connection: Connection, project_pk: int, wanted: Mapping[str, Any], *, actor: str
) -> bool:
    """Change settings of a project; what is in force already leaves no trace.

    What is counted by day follows a change of the zone in the background (`moving_days`).

    Args:
        connection: an open transaction.
        project_pk: the project.
        wanted: of `name`, `time_zone`, `trace_url_template`, `retention_days`, `assesses_all`.
        actor: who does it.

    Returns:
        Whether anything was changed.

    Raises:
        ConflictError: the name is taken.
    """
    lock(connection, project_pk)
    before = get(connection, project_pk)
    changed = {key: value for key, value in wanted.items() if value != getattr(before, key)}
    if not changed:
        return False
    statement = update(projects).where(projects.c.pk == project_pk).values(changed)
    try:
        with connection.begin_nested():
            connection.execute(statement)
    except IntegrityError as error:
        raise ConflictError(f"there is a project {wanted['name']!r} already") from error
    details = {key: {"from": getattr(before, key), "to": value} for key, value in changed.items()}
    audit_log.note(
        connection,
        project_pk,
        actor,
        "project.changed",
        subject=before.project_id,
        details=details,
    )
    return True


def lock(connection: Connection, project_pk: int) -> None:
    """Let nobody else change what belongs to the project before this transaction ends."""
    # NO KEY UPDATE: what comes in refers to the project, and is not held up.
    connection.execute(
        select(projects.c.pk).where(projects.c.pk == project_pk).with_for_update(key_share=True)
    )


def public_ids(connection: Connection, pks: Collection[int]) -> dict[int, str]:
    """Read the ids that clients see."""
    rows = connection.execute(
        select(projects.c.pk, projects.c.project_id).where(projects.c.pk.in_(pks))
    )
    return dict(tuple(row) for row in rows)


def create_key(
    connection: Connection,
    project: Project,
    scopes: Collection[str],
    *,
    name: str = "",
    expires_at: datetime | None = None,
) -> str:
    """Make an API key and return it: the only time that anyone sees it whole."""
    return new_key(connection, project, scopes, name=name, expires_at=expires_at).key


def new_key(
    connection: Connection,
    project: Project,
    scopes: Collection[str],
    *,
    name: str = "",
    expires_at: datetime | None = None,
    created_by: str | None = None,
) -> NewKey:
    """Make an API key."""
    key = KEY_PREFIX + secrets.token_urlsafe(32)
    made = NewKey(f"key-{secrets.token_hex(8)}", key, key[:_SHOWN_CHARACTERS])
    connection.execute(
        insert(api_keys).values(
            project_pk=project.pk,
            key_id=made.key_id,
            name=name,
            prefix=made.prefix,
            key_hash=digest(key),
            scopes=[scope for scope in SCOPES if scope in scopes],
            expires_at=expires_at,
            created_by=created_by,
        )
    )
    return made


def key_holder(connection: Connection, key: str) -> KeyHolder | None:
    """Find whom a key speaks for and note that it was used; None: unknown, revoked or expired."""
    k = api_keys.c
    alive = or_(k.expires_at.is_(None), k.expires_at > func.now())
    row = connection.execute(
        update(api_keys)
        .where(k.key_hash == digest(key), k.revoked_at.is_(None), alive)
        .where(projects.c.pk == k.project_pk)
        .values(last_used_at=func.now())
        .returning(k.key_id, k.scopes, k.expires_at, *PROJECT_COLUMNS)
    ).one_or_none()
    if row is None:
        return None
    key_id, scopes, expires_at, *project = row
    return KeyHolder(Project(*project), key_id, frozenset(scopes), expires_at)

"""Projects and their API keys."""

import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from sqlalchemy import func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from mesedi_server.errors import ConflictError, NotFoundError
from mesedi_server.store.database import Connection
from mesedi_server.store.tables import api_keys, projects

KEY_PREFIX = "mesedi_sk_"
"""What every API key begins with; the published SDK insists on it."""
SCOPES = ("ingest", "read", "admin")
"""What a key may be good for; `admin` includes the others."""

_SHOWN_CHARACTERS = 14


@dataclass(frozen=True, slots=True)
class Project:
    """One tenant."""

    pk: int
    project_id: str
    name: str


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """Who a request's API key speaks for, and what it may do."""

    project: Project
    key_id: str
    scopes: frozenset[str]
    expires_at: datetime | None

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
    columns = projects.c
    rows = connection.execute(
        select(columns.pk, columns.project_id, columns.name).order_by(columns.pk)
    )
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
    key = KEY_PREFIX + secrets.token_urlsafe(32)
    connection.execute(
        insert(api_keys).values(
            project_pk=project.pk,
            key_id=f"key-{secrets.token_hex(8)}",
            name=name,
            prefix=key[:_SHOWN_CHARACTERS],
            key_hash=_digest(key),
            scopes=[scope for scope in SCOPES if scope in scopes],
            expires_at=expires_at,
        )
    )
    return key


def key_holder(connection: Connection, key: str) -> KeyHolder | None:
    """Find whom a key speaks for and note that it was used; None: unknown, revoked or expired."""
    k = api_keys.c
    alive = or_(k.expires_at.is_(None), k.expires_at > func.now())
    row = connection.execute(
        update(api_keys)
        .where(k.key_hash == _digest(key), k.revoked_at.is_(None), alive)
        .where(projects.c.pk == k.project_pk)
        .values(last_used_at=func.now())
        .returning(
            projects.c.pk, projects.c.project_id, projects.c.name, k.key_id, k.scopes, k.expires_at
        )
    ).one_or_none()
    if row is None:
        return None
    pk, project_id, name, key_id, scopes, expires_at = row
    return KeyHolder(Project(pk, project_id, name), key_id, frozenset(scopes), expires_at)


def _digest(key: str) -> bytes:
    return sha256(key.encode()).digest()

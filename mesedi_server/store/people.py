"""People who look at the pages: one-time sign-in links, sessions, and the projects they may see."""

import secrets
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256

from sqlalchemy import delete, func, insert, literal, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from mesedi_server.store.database import Connection
from mesedi_server.store.projects import Project
from mesedi_server.store.tables import memberships, projects, sessions, sign_in_links, users

LINK_LIFETIME = timedelta(hours=24)
"""How long an unused sign-in link works."""
SESSION_LIFETIME = timedelta(days=14)
"""How long a browser stays signed in."""

ROLES = ("viewer", "member", "admin")
"""What a person may be in a project, the least first."""


@dataclass(frozen=True, slots=True)
class Membership:
    """A project that a person may see, and as what."""

    project: Project
    role: str

    def may(self, role: str) -> bool:
        """Tell whether the person is at least this."""
        return ROLES.index(self.role) >= ROLES.index(role)


@dataclass(frozen=True, slots=True)
class Session:
    """A signed-in browser."""

    user_pk: int
    user_name: str
    csrf_token: str


def ensure_operator(connection: Connection, name: str) -> int:
    """Make sure that a person exists and is admin of every project; return the person's key."""
    statement = upsert(users).values(name=name)
    user_pk = connection.execute(
        statement.on_conflict_do_update(
            index_elements=[users.c.name], set_={"name": statement.excluded.name}
        ).returning(users.c.pk)
    ).scalar_one()
    pairs = select(literal(user_pk), projects.c.pk, literal("admin"))
    connection.execute(
        upsert(memberships)
        .from_select(["user_pk", "project_pk", "role"], pairs)
        .on_conflict_do_nothing()
    )
    return int(user_pk)


def create_sign_in_link(connection: Connection, user_pk: int) -> str:
    """Make the secret part of a link that signs a person in once."""
    token = secrets.token_urlsafe(32)
    connection.execute(
        insert(sign_in_links).values(
            token_hash=_digest(token), user_pk=user_pk, expires_at=func.now() + LINK_LIFETIME
        )
    )
    return token


def use_sign_in_link(connection: Connection, token: str) -> str | None:
    """Turn a link into a session and return the session's secret; None: used, expired or unknown."""
    links = sign_in_links.c
    user_pk = connection.execute(
        update(sign_in_links)
        .where(links.token_hash == _digest(token))
        .where(links.used_at.is_(None), links.expires_at > func.now())
        .values(used_at=func.now())
        .returning(links.user_pk)
    ).scalar_one_or_none()
    if user_pk is None:
        return None
    secret = secrets.token_urlsafe(32)
    connection.execute(
        insert(sessions).values(
            token_hash=_digest(secret),
            user_pk=user_pk,
            csrf_token=secrets.token_urlsafe(24),
            expires_at=func.now() + SESSION_LIFETIME,
        )
    )
    return secret


def session(connection: Connection, secret: str) -> Session | None:
    """Find the session of a browser; None: ended or unknown."""
    statement = (
        select(users.c.pk, users.c.name, sessions.c.csrf_token)
        .join_from(sessions, users)
        .where(sessions.c.token_hash == _digest(secret), sessions.c.expires_at > func.now())
    )
    row = connection.execute(statement).one_or_none()
    return None if row is None else Session(*row)


def end_session(connection: Connection, secret: str) -> None:
    """Sign a browser out."""
    connection.execute(delete(sessions).where(sessions.c.token_hash == _digest(secret)))


def memberships_of(connection: Connection, user_pk: int) -> list[Membership]:
    """List the projects that a person may see, oldest first."""
    p = projects.c
    rows = connection.execute(
        select(p.pk, p.project_id, p.name, memberships.c.role)
        .join_from(memberships, projects)
        .where(memberships.c.user_pk == user_pk)
        .order_by(p.pk)
    )
    return [Membership(Project(pk, project_id, name), role) for pk, project_id, name, role in rows]


def _digest(secret: str) -> bytes:
    return sha256(secret.encode()).digest()

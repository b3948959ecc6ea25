"""People who look at the pages: passwords, one-time sign-in links, sessions, and the projects they may see.

Passwords come here as hashes alone; `passwords` makes and checks them.
"""

import secrets
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import bindparam, delete, func, insert, literal, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import IntegrityError

from mesedi_server.errors import ConflictError, NotFoundError
from mesedi_server.permission import ROLES
from mesedi_server.store.database import Connection
from mesedi_server.store.digests import digest
from mesedi_server.store.projects import PROJECT_COLUMNS, Project
from mesedi_server.store.tables import memberships, projects, sessions, sign_in_links, users

LINK_LIFETIME = timedelta(hours=24)
"""How long an unused sign-in link works."""
SESSION_LIFETIME = timedelta(days=14)
"""How long a browser stays signed in."""

# Every page asks these: made once, they are asked in a third of the time.
_SESSION = (
    select(users.c.pk, users.c.name, sessions.c.csrf_token)
    .join_from(sessions, users)
    .where(sessions.c.token_hash == bindparam("hash"), sessions.c.expires_at > func.now())
)
_MEMBERSHIPS = (
    select(memberships.c.role, *PROJECT_COLUMNS)
    .join_from(memberships, projects)
    .where(memberships.c.user_pk == bindparam("user"))
    .order_by(projects.c.pk)
)


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


@dataclass(frozen=True, slots=True)
class Account:
    """A person, and what their password must match."""

    user_pk: int
    name: str
    password_hash: str | None
    """None: the person has no password, and signs in by links alone."""


def account(connection: Connection, name: str) -> Account:
    """Find a person.

    Raises:
        NotFoundError: nobody is called so.
    """
    u = users.c
    row = connection.execute(
        select(u.pk, u.name, u.password_hash).where(u.name == name)
    ).one_or_none()
    if row is None:
        raise NotFoundError(f"person {name!r}")
    return Account(*row)


def create(connection: Connection, name: str) -> int:
    """Make a person, who is in no project yet; return the person's key.

    Raises:
        ConflictError: the name is taken.
    """
    try:
        with connection.begin_nested():
            statement = insert(users).values(name=name).returning(users.c.pk)
            return int(connection.execute(statement).scalar_one())
    except IntegrityError as error:
        raise ConflictError(f"there is a person {name!r} already") from error


def remove(connection: Connection, user_pk: int) -> None:
    """Delete a person, and with them their memberships, links and sessions; what they did stays in the histories."""
    connection.execute(delete(users).where(users.c.pk == user_pk))


def set_password(
    connection: Connection, user_pk: int, password_hash: str, *, kept_session: str | None = None
) -> None:
    """Change a person's password; their sessions end, except one, and links not yet used are void."""
    connection.execute(
        update(users).where(users.c.pk == user_pk).values(password_hash=password_hash)
    )
    connection.execute(delete(sign_in_links).where(sign_in_links.c.user_pk == user_pk))
    end_sessions(connection, user_pk, kept=kept_session)


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
            token_hash=digest(token), user_pk=user_pk, expires_at=func.now() + LINK_LIFETIME
        )
    )
    return token


def use_sign_in_link(connection: Connection, token: str) -> str | None:
    """Turn a link into a session and return the session's secret; None: used, expired or unknown."""
    links = sign_in_links.c
    user_pk = connection.execute(
        update(sign_in_links)
        .where(links.token_hash == digest(token))
        .where(links.used_at.is_(None), links.expires_at > func.now())
        .values(used_at=func.now())
        .returning(links.user_pk)
    ).scalar_one_or_none()
    return None if user_pk is None else begin_session(connection, user_pk)


def begin_session(connection: Connection, user_pk: int) -> str:
    """Sign a browser in and return its secret."""
    secret = secrets.token_urlsafe(32)
    connection.execute(
        insert(sessions).values(
            token_hash=digest(secret),
            user_pk=user_pk,
            csrf_token=secrets.token_urlsafe(24),
            expires_at=func.now() + SESSION_LIFETIME,
        )
    )
    return secret


def session(connection: Connection, secret: str) -> Session | None:
    """Find the session of a browser; None: ended or unknown."""
    row = connection.execute(_SESSION, {"hash": digest(secret)}).one_or_none()
    return None if row is None else Session(*row)


def end_session(connection: Connection, secret: str) -> None:
    """Sign a browser out."""
    connection.execute(delete(sessions).where(sessions.c.token_hash == digest(secret)))


def end_sessions(connection: Connection, user_pk: int, *, kept: str | None = None) -> int:
    """Sign a person out of all browsers, but for the one with the secret `kept`; return of how many."""
    statement = delete(sessions).where(sessions.c.user_pk == user_pk)
    if kept is not None:
        statement = statement.where(sessions.c.token_hash != digest(kept))
    return connection.execute(statement).rowcount


def count_sessions(connection: Connection, user_pk: int) -> int:
    """Count the browsers that a person is signed in with."""
    statement = select(func.count()).where(
        sessions.c.user_pk == user_pk, sessions.c.expires_at > func.now()
    )
    return int(connection.execute(statement).scalar_one())


def delete_expired(connection: Connection) -> int:
    """Delete the sessions and links that are good no more; return how many."""
    outdated = [
        connection.execute(delete(table).where(table.c.expires_at <= func.now())).rowcount
        for table in (sessions, sign_in_links)
    ]
    return sum(outdated)


def memberships_of(connection: Connection, user_pk: int) -> list[Membership]:
    """List the projects that a person may see, oldest first."""
    rows = connection.execute(_MEMBERSHIPS, {"user": user_pk})
    return [Membership(Project(*project), role) for role, *project in rows]

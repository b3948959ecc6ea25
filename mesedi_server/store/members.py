"""The members of a project, as its admins see and change them."""

from datetime import datetime

from msgspec import Struct
from sqlalchemy import and_, delete, exists, func, insert, select, update
from sqlalchemy.orm import aliased

from mesedi_server.errors import ConflictError, NotFoundError, RefusedError
from mesedi_server.store import audit_log, people, projects
from mesedi_server.store.database import Connection
from mesedi_server.store.tables import memberships, sessions, users

_m = memberships.c


class Member(Struct, frozen=True, kw_only=True):
    """Somebody who may see a project."""

    user_pk: int
    name: str
    role: str
    has_password: bool
    signed_in_at: datetime | None
    """When the newest of the person's sessions that still last began."""


def of_project(connection: Connection, project_pk: int) -> list[Member]:
    """List the members, by name."""
    signed_in_at = (
        select(func.max(sessions.c.created_at))
        .where(sessions.c.user_pk == users.c.pk)
        .scalar_subquery()
    )
    rows = connection.execute(
        select(
            users.c.pk.label("user_pk"),
            users.c.name,
            _m.role,
            users.c.password_hash.is_not(None).label("has_password"),
            signed_in_at.label("signed_in_at"),
        )
        .join_from(memberships, users)
        .where(_m.project_pk == project_pk)
        .order_by(func.lower(users.c.name), users.c.name)
    )
    return [Member(**row) for row in rows.mappings()]


def get(connection: Connection, project_pk: int, name: str) -> Member:
    """Find a member.

    Raises:
        NotFoundError: nobody of this name is in the project.
    """
    for member in of_project(connection, project_pk):
        if member.name == name:
            return member
    raise NotFoundError("member")


def add(connection: Connection, project_pk: int, name: str, role: str, *, actor: str) -> bool:
    """Let a person in; tell whether the person had to be made.

    Raises:
        ConflictError: the person is a member already.
    """
    projects.lock(connection, project_pk)
    try:
        user_pk, is_new = people.account(connection, name).user_pk, False
    except NotFoundError:
        user_pk, is_new = people.create(connection, name), True
    is_in = select(exists().where(_m.project_pk == project_pk, _m.user_pk == user_pk))
    if connection.execute(is_in).scalar_one():
        raise ConflictError(f"{name} is a member already")
    connection.execute(
        insert(memberships).values(user_pk=user_pk, project_pk=project_pk, role=role)
    )
    details = {"role": role}
    audit_log.note(connection, project_pk, actor, "member.added", subject=name, details=details)
    return is_new


def change_role(
    connection: Connection, project_pk: int, name: str, role: str, *, actor: str
) -> None:
    """Give a member another role.

    Raises:
        NotFoundError: nobody of this name is in the project.
        ConflictError: it would leave the project without admin.
    """
    projects.lock(connection, project_pk)
    member = get(connection, project_pk, name)
    if member.role == role:
        return
    _check_admin_left(connection, project_pk, member)
    connection.execute(
        update(memberships)
        .where(_m.project_pk == project_pk, _m.user_pk == member.user_pk)
        .values(role=role)
    )
    details = {"from": member.role, "to": role}
    audit_log.note(
        connection, project_pk, actor, "member.role_changed", subject=name, details=details
    )


def remove(connection: Connection, project_pk: int, name: str, *, actor: str) -> None:
    """Shut a member out, from the next request on.

    Raises:
        NotFoundError: nobody of this name is in the project.
        ConflictError: it would leave the project without admin.
    """
    projects.lock(connection, project_pk)
    member = get(connection, project_pk, name)
    _check_admin_left(connection, project_pk, member)
    connection.execute(
        delete(memberships).where(_m.project_pk == project_pk, _m.user_pk == member.user_pk)
    )
    details = {"role": member.role}
    audit_log.note(connection, project_pk, actor, "member.removed", subject=name, details=details)


def sign_in_link(
    connection: Connection, project_pk: int, name: str, *, admin_pk: int, actor: str, command: str
) -> str:
    """Make the secret part of a link that signs a member in once.

    Only for people all of whose projects the admin is admin of: whoever has the link is that person everywhere.

    Args:
        connection: an open transaction.
        project_pk: the project.
        name: the member.
        admin_pk: who wants the link.
        actor: what the audit log calls them.
        command: what makes the link where they may not.

    Raises:
        NotFoundError: nobody of this name is in the project.
        RefusedError: the person is in a project that the admin is no admin of (403).
    """
    member = get(connection, project_pk, name)
    if _is_elsewhere(connection, member.user_pk, admin_pk):
        raise RefusedError(
            f"{name} is in projects that you are no admin of; whoever runs the server can make"
            f" the link: {command}",
            403,
        )
    audit_log.note(connection, project_pk, actor, "member.link_made", subject=name)
    return people.create_sign_in_link(connection, member.user_pk)


def _is_elsewhere(connection: Connection, user_pk: int, admin_pk: int) -> bool:
    own = aliased(memberships)
    is_theirs_too = exists().where(
        and_(
            own.c.project_pk == _m.project_pk,
            own.c.user_pk == admin_pk,
            own.c.role == "admin",
        )
    )
    statement = select(exists().where(_m.user_pk == user_pk, ~is_theirs_too))
    return bool(connection.execute(statement).scalar_one())


def _check_admin_left(connection: Connection, project_pk: int, member: Member) -> None:
    if member.role != "admin":
        return
    others = exists().where(
        _m.project_pk == project_pk, _m.role == "admin", _m.user_pk != member.user_pk
    )
    if not connection.execute(select(others)).scalar_one():
        raise ConflictError("a project needs an admin; make somebody else one first")

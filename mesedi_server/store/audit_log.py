"""The audit log: what people and admin keys have done to a project. Lines are added, never changed.

Whatever an admin can do is noted where the store does it, so that no edge can forget it.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct, to_builtins
from sqlalchemy import insert, literal, select

from mesedi_server.store.database import Connection
from mesedi_server.store.paging import Page, Paging
from mesedi_server.store.tables import audit_log, failure_groups

# Its name in cursors.
_LIST = "audit_log"

_a = audit_log.c


class AuditLine(Struct, frozen=True, kw_only=True):
    """Something that somebody did."""

    pk: int
    at: datetime
    actor: str
    action: str
    subject: str
    details: dict[str, Any]


def note(
    connection: Connection,
    project_pk: int,
    actor: str,
    action: str,
    *,
    subject: str,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Add a line.

    Args:
        connection: the transaction in which it is done.
        project_pk: the project that it is done to.
        actor: who does it, as histories call them.
        action: `resource.what_was_done`.
        subject: the resource's public id or name.
        details: what else to keep; values of None are left out. Never a secret.
    """
    kept = {name: value for name, value in (details or {}).items() if value is not None}
    connection.execute(
        insert(audit_log).values(
            project_pk=project_pk,
            actor=actor,
            action=action,
            subject=subject,
            details=to_builtins(kept),
        )
    )


def note_groups(
    connection: Connection, group_pks: Collection[int], actor: str, kind: str, reason: str | None
) -> None:
    """Add a line for each failure group that somebody did something to."""
    g = failure_groups.c
    details = {} if reason is None else {"reason": reason}
    line = select(
        g.project_pk,
        literal(actor),
        literal(f"group.{kind}"),
        g.group_id,
        literal(details, audit_log.c.details.type),
    ).where(g.pk.in_(group_pks))
    names = ["project_pk", "actor", "action", "subject", "details"]
    connection.execute(insert(audit_log).from_select(names, line))


def list_page(connection: Connection, project_pk: int, paging: Paging) -> Page[AuditLine]:
    """List what was done, the newest first."""
    statement = (
        select(*(_a[name] for name in AuditLine.__struct_fields__))
        .where(_a.project_pk == project_pk, *paging.after(_LIST, _a.at, _a.pk))
        .order_by(_a.at.desc(), _a.pk.desc())
        .limit(paging.limit + 1)
    )
    lines = [AuditLine(**row) for row in connection.execute(statement).mappings()]
    return paging.page(_LIST, lines, lambda line: (line.at, line.pk))

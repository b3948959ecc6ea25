"""Old executions: what a project wants to forget, deleted a batch at a time."""

from collections.abc import Collection
from datetime import timedelta

from sqlalchemy import delete, func, select

from mesedi_server.store import occurrences, rollups
from mesedi_server.store.database import Connection
from mesedi_server.store.projects import Project
from mesedi_server.store.rollups import Examined
from mesedi_server.store.tables import events, executions, projects

_x = executions.c


def projects_that_forget(connection: Connection) -> list[int]:
    """List the projects that keep their executions for a limited time."""
    p = projects.c
    statement = select(p.pk).where(p.retention_days.is_not(None)).order_by(p.pk)
    return list(connection.execute(statement).scalars())


def delete_old(
    connection: Connection, project: Project, classes: Collection[str], *, limit: int
) -> int:
    """Delete up to `limit` executions that started before the time that the project keeps, oldest first.

    With them go their events, scores, halts and occurrences; the groups are counted anew. One that is being examined
    is left for the next time.

    Args:
        connection: an open transaction.
        project: whose executions.
        classes: all failure classes that there are.
        limit: executions at most.

    Returns:
        How many were deleted.
    """
    if project.retention_days is None:
        return 0
    kept_since = func.now() - timedelta(days=project.retention_days)
    old = (
        select(_x.pk)
        .where(_x.project_pk == project.pk, _x.started_at < kept_since)
        .order_by(_x.started_at, _x.pk)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    pks = list(connection.execute(old).scalars())
    if pks:
        _forget(connection, project.pk, pks, classes)
    return len(pks)


def _forget(
    connection: Connection, project_pk: int, pks: list[int], classes: Collection[str]
) -> None:
    # As an examination that finds nothing: whatever is counted of these executions is taken back where it is kept.
    occurrences.replace(connection, pks, [], classes)
    rollups.replace(connection, [Examined(pk, project_pk, []) for pk in pks])
    connection.execute(delete(events).where(events.c.execution_pk.in_(pks)))
    connection.execute(delete(executions).where(_x.pk.in_(pks)))

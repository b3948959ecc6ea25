"""Halts: kept in the database, so that a stream that opens late, or in another process, gets one at once."""

from dataclasses import dataclass

from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert

from mesedi_server.store import audit_log
from mesedi_server.store.database import Connection
from mesedi_server.store.tables import executions, halts


@dataclass(frozen=True, slots=True)
class HaltState:
    """What a halt stream wants to know."""

    reason: str | None
    """Why the execution is to halt; None: it may go on."""
    is_closed: bool


def request(
    connection: Connection, project_pk: int, execution_id: str, reason: str, requested_by: str
) -> int:
    """Ask an execution to halt and return its key; the first reason stays.

    An execution that is not known yet is made, as for an event: its stream may be open before anything else names it.
    """
    pk = _known(connection, project_pk, execution_id)
    asked = connection.execute(
        insert(halts)
        .values(execution_pk=pk, reason=reason, requested_by=requested_by)
        .on_conflict_do_nothing()
        .returning(halts.c.execution_pk)
    ).scalar_one_or_none()
    if asked is not None:
        details = {"reason": reason}
        audit_log.note(
            connection,
            project_pk,
            requested_by,
            "execution.halted",
            subject=execution_id,
            details=details,
        )
    return pk


def _known(connection: Connection, project_pk: int, execution_id: str) -> int:
    x = executions.c
    connection.execute(
        insert(executions)
        .values(project_pk=project_pk, execution_id=execution_id)
        .on_conflict_do_nothing()
    )
    found = select(x.pk).where(x.project_pk == project_pk, x.execution_id == execution_id)
    return int(connection.execute(found).scalar_one())


def state(connection: Connection, project_pk: int, execution_id: str) -> HaltState:
    """Read whether an execution, known or not yet, is to halt or has closed."""
    x = executions.c
    row = connection.execute(
        select(halts.c.reason, x.closed_at)
        .join_from(executions, halts, isouter=True)
        .where(x.project_pk == project_pk, x.execution_id == execution_id)
    ).one_or_none()
    return (
        HaltState(None, is_closed=False)
        if row is None
        else HaltState(row[0], is_closed=row[1] is not None)
    )


def note_delivery(connection: Connection, project_pk: int, execution_id: str) -> None:
    """Count that a stream has passed the halt on."""
    pk = select(executions.c.pk).where(
        executions.c.project_pk == project_pk, executions.c.execution_id == execution_id
    )
    connection.execute(
        update(halts)
        .where(halts.c.execution_pk == pk.scalar_subquery())
        .values(deliveries=halts.c.deliveries + 1)
    )


def deliveries(connection: Connection, execution_pk: int) -> int:
    """Tell how many streams have passed the halt on."""
    statement = select(halts.c.deliveries).where(halts.c.execution_pk == execution_pk)
    return int(connection.execute(statement).scalar_one())

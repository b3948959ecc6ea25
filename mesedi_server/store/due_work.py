"""Due work: which executions are to be examined, and when; the fact that detection hangs on.

A claim is a row lock: it is free again when its transaction ends, however that ends.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec import Struct
from sqlalchemy import ColumnElement, Update, and_, exists, false, func, not_, select, update

from mesedi_server.store.database import Connection
from mesedi_server.store.json_text import json_text
from mesedi_server.store.tables import executions

_x = executions.c


@dataclass(frozen=True, slots=True)
class DueExecution:
    """An execution that this transaction has claimed for examination."""

    pk: int
    project_pk: int
    execution_id: str
    status: str
    crash_signature: str | None
    received_at: datetime
    release: str | None
    environment: str | None


def claim_due(connection: Connection, *, settle_s: float, limit: int) -> list[DueExecution]:
    """Claim executions that are due, oldest first; they are free again when the transaction ends.

    An open execution that has never been examined and got an event within the last `settle_s` seconds is put off until
    it has been quiet that long.
    """
    connection.execute(_put_off(settle_s, limit))
    rows = connection.execute(
        select(
            _x.pk,
            _x.project_pk,
            _x.execution_id,
            _x.status,
            _x.crash_signature,
            _x.received_at,
            _x.release,
            _x.environment,
        )
        .where(_x.detect_due_at <= func.now(), not_(_is_restless(settle_s)))
        .order_by(_x.detect_due_at)
        .limit(limit)
        # NO KEY UPDATE: rows that refer to the execution, a halt for one, can be written meanwhile.
        .with_for_update(skip_locked=True, key_share=True)
    )
    return [DueExecution(*row) for row in rows]


def _put_off(settle_s: float, limit: int) -> Update:
    restless = (
        select(_x.pk)
        .where(_x.detect_due_at <= func.now(), _is_restless(settle_s))
        .order_by(_x.detect_due_at)
        .limit(limit)
        .with_for_update(skip_locked=True, key_share=True)
    )
    settled_at = _settled_at(settle_s)
    return update(executions).where(_x.pk.in_(restless)).values(detect_due_at=settled_at)


def _is_restless(settle_s: float) -> ColumnElement[bool]:
    is_first_look = and_(_x.closed_at.is_(None), _x.examined_at.is_(None))
    return and_(is_first_look, func.coalesce(_settled_at(settle_s) > func.now(), false()))


def _settled_at(settle_s: float) -> ColumnElement[datetime]:
    return _x.last_event_at + timedelta(seconds=settle_s)


class ExaminedRow(Struct):
    """What an examination leaves on its execution."""

    pk: int
    overflow_count: int
    overflow_signatures: list[str]


_MARK_EXAMINED = """
UPDATE executions x SET detect_due_at = NULL, examined_at = now(), overflow_count = e.overflow_count,
    overflow_signatures = CASE WHEN e.overflow_count > 0 THEN e.overflow_signatures END
FROM jsonb_to_recordset(%(rows)s::jsonb) AS e (pk bigint, overflow_count int, overflow_signatures jsonb)
WHERE x.pk = e.pk
"""


def mark_examined(connection: Connection, rows: list[ExaminedRow]) -> None:
    """Take executions off the due list."""
    connection.exec_driver_sql(_MARK_EXAMINED, {"rows": json_text(rows)})


def make_due(
    connection: Connection,
    project_pk: int,
    *,
    since: datetime,
    until: datetime | None,
    after: str = "",
    limit: int,
) -> tuple[int, str | None]:
    """Make up to `limit` examined executions that started in a time span due again.

    They are taken in the order of their ids, from the one that follows `after`. One that is being examined is waited
    for: that examination may have begun under older thresholds.

    Returns:
        How many, and the id to go on after; None: there are no more.
    """
    span = [_x.project_pk == project_pk, _x.started_at >= since]
    if until is not None:
        span.append(_x.started_at < until)
    wanted = (
        select(_x.pk)
        .where(*span, _x.execution_id > after, _x.examined_at.is_not(None))
        .order_by(_x.execution_id)
        .limit(limit)
        .with_for_update(key_share=True)
    )
    marked = (
        update(executions)
        .where(_x.pk.in_(wanted))
        .values(detect_due_at=func.now())
        .returning(_x.execution_id)
        .cte()
    )
    count, last = connection.execute(
        select(func.count(), func.max(marked.c.execution_id)).select_from(marked)
    ).one()
    return count, last


def is_behind(connection: Connection, *, late_s: float) -> bool:
    """Tell whether an execution has been due for longer than `late_s` seconds."""
    late = _x.detect_due_at <= func.now() - timedelta(seconds=late_s)
    return bool(connection.execute(select(exists().where(late))).scalar_one())


def put_off(connection: Connection, pk: int) -> None:
    """Leave an execution that cannot be examined alone for an hour."""
    later = func.now() + timedelta(hours=1)
    connection.execute(update(executions).where(_x.pk == pk).values(detect_due_at=later))

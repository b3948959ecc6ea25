"""Executions: what the client says of them, and when they are due to be examined."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from msgspec import Raw, Struct
from sqlalchemy import (
    ColumnElement,
    Select,
    Text,
    Update,
    and_,
    case,
    cast,
    exists,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from mesedi_server.errors import ConflictError, NotFoundError
from mesedi_server.store.database import Connection
from mesedi_server.store.json_rows import json_rows
from mesedi_server.store.paging import Page, Paging
from mesedi_server.store.tables import events, executions, score_rollups

_x = executions.c
_OPEN = ("started", "awaiting_human")


def post(connection: Connection, project_pk: int, facts: dict[str, Any]) -> str:
    """Store what `POST /executions` says and return the status in force.

    The first POST counts, and only for what no PATCH has set: a repeated or late one changes nothing.
    """
    said = {name: value for name, value in facts.items() if value is not None}
    statement = insert(executions).values(
        project_pk=project_pk, posted_at=func.now(), paused_at=_pause_start(said["status"]), **said
    )
    is_first_word = and_(_x.posted_at.is_(None), _x.patched_at.is_(None))
    kept: dict[str, ColumnElement[Any]] = {
        name: func.coalesce(_x[name], statement.excluded[name])
        for name in said
        if name not in ("execution_id", "status", "started_at")
    }
    if "started_at" in said:
        # A row that was made for an event or a PATCH has only the server's guess.
        kept["started_at"] = case(
            (_x.posted_at.is_(None), statement.excluded.started_at), else_=_x.started_at
        )
    upsert = statement.on_conflict_do_update(
        index_elements=[_x.project_pk, _x.execution_id],
        set_={
            **kept,
            "posted_at": func.coalesce(_x.posted_at, statement.excluded.posted_at),
            "status": case((is_first_word, statement.excluded.status), else_=_x.status),
            "paused_at": case((is_first_word, statement.excluded.paused_at), else_=_x.paused_at),
        },
    ).returning(_x.status)
    return str(connection.execute(upsert).scalar_one())


def patch(connection: Connection, project_pk: int, execution_id: str, facts: dict[str, Any]) -> str:
    """Apply `PATCH /executions/{id}` and return the status in force; an unknown execution is made.

    The first terminal status closes the execution, and makes it due.

    Raises:
        ConflictError: it is closed already, with another status.
    """
    connection.execute(
        insert(executions)
        .values(project_pk=project_pk, execution_id=execution_id)
        .on_conflict_do_nothing()
    )
    row = connection.execute(
        select(_x.pk, _x.status, _x.closed_at)
        .where(_x.project_pk == project_pk, _x.execution_id == execution_id)
        .with_for_update()
    ).one()
    status = facts["status"]
    if row.closed_at is not None:
        if status != row.status:
            raise ConflictError(f"invalid lifecycle transition: {row.status} -> {status}")
        return str(row.status)
    connection.execute(
        update(executions).where(_x.pk == row.pk).values(_changes(row.status, facts))
    )
    return str(status)


def _changes(before: str, facts: dict[str, Any]) -> dict[str, Any]:
    status = facts["status"]
    changes = {name: value for name, value in facts.items() if value is not None}
    changes["patched_at"] = func.now()
    if status == "awaiting_human":
        changes["paused_at"] = func.coalesce(_x.paused_at, func.now())
        if before != status:
            changes["pause_count"] = _x.pause_count + 1
    else:
        changes["paused_at"] = None
        changes["total_paused_ms"] = _x.total_paused_ms + _paused_ms()
    if status not in _OPEN:
        changes["closed_at"] = changes["detect_due_at"] = func.now()
        changes.setdefault("ended_at", func.now())
    return changes


def _paused_ms() -> ColumnElement[int]:
    seconds = func.extract("epoch", func.now() - _x.paused_at)
    return func.coalesce(func.floor(seconds * 1000), 0)


def _pause_start(status: str) -> ColumnElement[datetime] | None:
    return func.now() if status == "awaiting_human" else None


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
        .where(_x.detect_due_at <= func.now())
        .order_by(_x.detect_due_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return [DueExecution(*row) for row in rows]


def _put_off(settle_s: float, limit: int) -> Update:
    settled_at = _x.last_event_at + timedelta(seconds=settle_s)
    restless = (
        select(_x.pk)
        .where(
            _x.detect_due_at <= func.now(),
            _x.closed_at.is_(None),
            _x.examined_at.is_(None),
            settled_at > func.now(),
        )
        .order_by(_x.detect_due_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return update(executions).where(_x.pk.in_(restless)).values(detect_due_at=settled_at)


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
    connection.exec_driver_sql(_MARK_EXAMINED, {"rows": json_rows(rows)})


def make_due(
    connection: Connection,
    project_pk: int,
    *,
    since: datetime,
    until: datetime | None,
    asked_at: datetime,
    limit: int,
) -> int:
    """Mark up to `limit` executions that started in a time span as due again; return how many.

    Those that were examined after `asked_at`, or are due anyway, are left out: called again and
    again it comes to an end.
    """
    span = [_x.project_pk == project_pk, _x.started_at >= since]
    if until is not None:
        span.append(_x.started_at < until)
    stale = (
        select(_x.pk)
        .where(*span, _x.examined_at < asked_at, _x.detect_due_at.is_(None))
        .order_by(_x.execution_id)
        .limit(limit)
        .with_for_update()
    )
    statement = update(executions).where(_x.pk.in_(stale)).values(detect_due_at=func.now())
    return connection.execute(statement).rowcount


def put_off_first(connection: Connection) -> str | None:
    """Put the execution that is due first off by an hour; return its id."""
    first = (
        select(_x.pk)
        .where(_x.detect_due_at <= func.now())
        .order_by(_x.detect_due_at)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    statement = (
        update(executions)
        .where(_x.pk.in_(first))
        .values(detect_due_at=func.now() + timedelta(hours=1))
        .returning(_x.execution_id)
    )
    return connection.execute(statement).scalar_one_or_none()


class Execution(Struct, frozen=True, kw_only=True):
    """An execution as it is shown; times are UTC."""

    pk: int
    execution_id: str
    status: str
    received_at: datetime
    started_at: datetime
    ended_at: datetime | None
    duration_ms: int | None
    closed_at: datetime | None
    paused_at: datetime | None
    total_paused_ms: int
    pause_count: int
    total_tokens_in: int | None
    total_tokens_out: int | None
    estimated_cost_usd: float | None
    sdk_language: str | None
    sdk_version: str | None
    tenant_id: str | None
    parent_execution_id: str | None
    release: str | None
    environment: str | None
    input_summary: str | None
    output_summary: str | None
    crash_signature: str | None
    last_event_at: datetime | None
    detect_due_at: datetime | None
    examined_at: datetime | None
    overflow_count: int
    overflow_signatures: list[str] | None


class Event(Struct, frozen=True, kw_only=True):
    """An event as it is shown; the payload is the JSON text that was stored."""

    event_id: str
    event_type: str
    sequence: int
    timestamp: datetime
    received_at: datetime
    duration_ms: int | None
    payload: Raw


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionFilter:
    """Which executions a list has; None: all."""

    q: str | None = None
    status: str | None = None
    evaluator: str | None = None
    metric: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    release: str | None = None
    environment: str | None = None


_SHOWN = [_x[name] for name in Execution.__struct_fields__]


def list_page(
    connection: Connection, project_pk: int, wanted: ExecutionFilter, paging: Paging
) -> Page[Execution]:
    """List executions, newest start first."""
    statement = (
        select(*_SHOWN)
        .where(_x.project_pk == project_pk, *_conditions(wanted))
        .where(*paging.after(_x.started_at, _x.pk))
        .order_by(_x.started_at.desc(), _x.pk.desc())
        .limit(paging.limit + 1)
    )
    return paging.page(_shown(connection, statement), lambda x: (x.started_at, x.pk))


def get(connection: Connection, project_pk: int, execution_id: str) -> Execution:
    """Read one execution.

    Raises:
        NotFoundError: unknown in this project.
    """
    statement = select(*_SHOWN).where(_x.project_pk == project_pk, _x.execution_id == execution_id)
    found = _shown(connection, statement)
    if not found:
        raise NotFoundError("execution")
    return found[0]


def events_of(connection: Connection, execution_pk: int, limit: int = 10_000) -> list[Event]:
    """Read an execution's events in their order."""
    e = events.c
    rows = connection.execute(
        select(
            e.event_id,
            e.event_type,
            e.sequence,
            e.timestamp,
            e.received_at,
            e.duration_ms,
            cast(e.payload, Text),
        )
        .where(e.execution_pk == execution_pk)
        .order_by(e.sequence, e.timestamp, e.event_id)
        .limit(limit)
    )
    return [
        Event(
            event_id=event_id,
            event_type=event_type,
            sequence=sequence,
            timestamp=timestamp,
            received_at=received_at,
            duration_ms=duration_ms,
            payload=Raw(payload or "null"),
        )
        for event_id, event_type, sequence, timestamp, received_at, duration_ms, payload in rows
    ]


def _shown(connection: Connection, statement: Select[Any]) -> list[Execution]:
    return [Execution(**row) for row in connection.execute(statement).mappings()]


def _conditions(wanted: ExecutionFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    for column, value in (
        (_x.status, wanted.status),
        (_x.release, wanted.release),
        (_x.environment, wanted.environment),
    ):
        if value is not None:
            conditions.append(column == value)
    if wanted.since is not None:
        conditions.append(_x.started_at >= wanted.since)
    if wanted.until is not None:
        conditions.append(_x.started_at < wanted.until)
    if wanted.q:
        conditions.append(
            or_(
                _x.execution_id.icontains(wanted.q, autoescape=True),
                _x.crash_signature.icontains(wanted.q, autoescape=True),
            )
        )
    if wanted.evaluator is not None or wanted.metric is not None:
        conditions.append(_has_scores(wanted.evaluator, wanted.metric))
    return conditions


def _has_scores(evaluator: str | None, metric: str | None) -> ColumnElement[bool]:
    r = score_rollups.c
    pair = exists().where(r.execution_pk == _x.pk, r.project_pk == _x.project_pk)
    if evaluator is not None:
        pair = pair.where(r.evaluator_id == evaluator)
    if metric is not None:
        pair = pair.where(r.metric_type == metric)
    return pair

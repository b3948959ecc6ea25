"""Executions: what the client says of them, and when they are due to be examined."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec import Raw, Struct
from sqlalchemy import (
    ColumnElement,
    Select,
    Text,
    bindparam,
    cast,
    exists,
    func,
    or_,
    select,
    tuple_,
)

from mesedi_server.errors import ConflictError, NotFoundError
from mesedi_server.store.database import Connection
from mesedi_server.store.json_text import json_text
from mesedi_server.store.paging import Page, Paging, cursor_after
from mesedi_server.store.tables import events, executions, score_rollups

_x = executions.c

_HAS_ANY = select(exists().where(_x.project_pk == bindparam("project")))

# What POST and PATCH may both say; a value that is there already is kept by POST, replaced by PATCH.
_FACTS = (
    "ended_at",
    "duration_ms",
    "total_tokens_in",
    "total_tokens_out",
    "estimated_cost_usd",
    "crash_signature",
    "input_summary",
    "output_summary",
    "release",
    "environment",
)
_FACT_TYPES = """ended_at timestamptz, duration_ms bigint, total_tokens_in bigint, total_tokens_out bigint,
    estimated_cost_usd float8, crash_signature text, input_summary text, output_summary text, release text,
    environment text"""
# What only POST may say.
_IDENTITY = ("tenant_id", "parent_execution_id", "sdk_language", "sdk_version")

_POST = f"""
INSERT INTO executions AS x (project_pk, execution_id, status, posted_at, started_at, paused_at,
    pause_count, {", ".join(_IDENTITY + _FACTS)})
SELECT %(project)s, execution_id, status, now(), coalesce(started_at, now()),
    CASE WHEN status = 'awaiting_human' THEN now() END, (status = 'awaiting_human')::int,
    {", ".join(_IDENTITY + _FACTS)}
FROM jsonb_to_record(%(facts)s::jsonb) AS f (execution_id text, status text, started_at timestamptz, tenant_id text,
    parent_execution_id text, sdk_language text, sdk_version text, {_FACT_TYPES})
ON CONFLICT (project_pk, execution_id) DO UPDATE SET
    {", ".join(f"{name} = coalesce(x.{name}, excluded.{name})" for name in _IDENTITY + _FACTS)},
    posted_at = coalesce(x.posted_at, excluded.posted_at),
    -- A row that was made for an event or a PATCH has only the server's guess.
    started_at = CASE WHEN x.posted_at IS NULL AND %(has_start)s THEN excluded.started_at ELSE x.started_at END,
    status = CASE WHEN x.posted_at IS NULL AND x.patched_at IS NULL THEN excluded.status ELSE x.status END,
    paused_at = CASE WHEN x.posted_at IS NULL AND x.patched_at IS NULL THEN excluded.paused_at ELSE x.paused_at END,
    pause_count = CASE WHEN x.posted_at IS NULL AND x.patched_at IS NULL THEN excluded.pause_count
        ELSE x.pause_count END,
    -- Occurrences carry the release: one that comes after the examination is worth another.
    detect_due_at = CASE WHEN x.examined_at IS NOT NULL AND x.posted_at IS NULL THEN coalesce(x.detect_due_at, now())
        ELSE x.detect_due_at END
RETURNING x.status
"""

# Nothing is changed, and nothing returned, where the execution has closed already.
_PATCH = f"""
INSERT INTO executions AS x (project_pk, execution_id, status, patched_at, paused_at, pause_count, closed_at,
    detect_due_at, {", ".join(_FACTS)})
SELECT %(project)s, %(execution_id)s, status, now(), CASE WHEN is_pause THEN now() END, is_pause::int,
    CASE WHEN is_close THEN now() END, CASE WHEN is_close THEN now() END,
    {", ".join(_FACTS)}
FROM jsonb_to_record(%(facts)s::jsonb) AS f (status text, {_FACT_TYPES}),
    LATERAL (SELECT status = 'awaiting_human' AS is_pause,
        status NOT IN ('started', 'awaiting_human') AS is_close) AS kind
ON CONFLICT (project_pk, execution_id) DO UPDATE SET
    {", ".join(f"{name} = coalesce(excluded.{name}, x.{name})" for name in _FACTS)},
    status = excluded.status,
    patched_at = excluded.patched_at,
    pause_count = x.pause_count + CASE WHEN x.status = 'awaiting_human' THEN 0 ELSE excluded.pause_count END,
    total_paused_ms = x.total_paused_ms + CASE WHEN excluded.paused_at IS NULL
        THEN coalesce(floor(extract(epoch FROM now() - x.paused_at) * 1000), 0) ELSE 0 END,
    paused_at = CASE WHEN excluded.paused_at IS NOT NULL THEN coalesce(x.paused_at, excluded.paused_at) END,
    closed_at = excluded.closed_at,
    detect_due_at = coalesce(excluded.detect_due_at, x.detect_due_at)
WHERE x.closed_at IS NULL
RETURNING x.status
"""


def post(connection: Connection, project_pk: int, facts: dict[str, Any]) -> str:
    """Store what `POST /executions` says and return the status in force; one statement.

    The first POST counts, and only for what no PATCH has set: a repeated or late one changes nothing.
    """
    parameters = {
        "project": project_pk,
        "facts": json_text(facts),
        "has_start": facts.get("started_at") is not None,
    }
    return str(connection.exec_driver_sql(_POST, parameters).scalar_one())


def patch(connection: Connection, project_pk: int, execution_id: str, facts: dict[str, Any]) -> str:
    """Apply `PATCH /executions/{id}` and return the status in force; an unknown execution is made.

    The first terminal status closes the execution, and makes it due.

    Raises:
        ConflictError: it is closed already, with another status.
    """
    parameters = {
        "project": project_pk,
        "execution_id": execution_id,
        "facts": json_text(facts),
    }
    if status := connection.exec_driver_sql(_PATCH, parameters).scalar_one_or_none():
        return str(status)
    kept = connection.execute(
        select(_x.status).where(_x.project_pk == project_pk, _x.execution_id == execution_id)
    ).scalar_one()
    if kept != facts["status"]:
        raise ConflictError(f"invalid lifecycle transition: {kept} -> {facts['status']}")
    return str(kept)


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


class TimelineEvent(Struct, frozen=True, kw_only=True):
    """An event as a page shows it; of a large payload only the beginning."""

    event_id: str
    event_type: str
    sequence: int
    timestamp: datetime
    received_at: datetime
    duration_ms: int | None
    evaluator_id: str | None
    metric_type: str | None
    score: float | None
    passed: bool | None
    payload: str
    payload_chars: int


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


# Its name in cursors.
_LIST = "executions"

SEARCHED = 5_000
"""Executions that a search looks through for one page."""

# A client that does not say when its execution ended has ended it with the request that closed it.
_ENDED_AT = func.coalesce(_x.ended_at, _x.closed_at).label("ended_at")
_SHOWN = [_ENDED_AT if name == "ended_at" else _x[name] for name in Execution.__struct_fields__]


def list_page(
    connection: Connection, project_pk: int, wanted: ExecutionFilter, paging: Paging
) -> Page[Execution]:
    """List executions, newest start first."""
    statement = _listed(project_pk, wanted, paging)
    return paging.page(_LIST, _shown(connection, statement), lambda x: (x.started_at, x.pk))


def search_page(
    connection: Connection, project_pk: int, wanted: ExecutionFilter, paging: Paging
) -> Page[Execution]:
    """List executions as `list_page`, but look through SEARCHED of them at most.

    A page may be short then, or empty, and still have a next one, which looks further back.
    """
    position = _x.started_at, _x.pk
    newest_first = select(*position).where(
        _x.project_pk == project_pk, *paging.after(_LIST, *position)
    )
    end = connection.execute(
        newest_first.order_by(_x.started_at.desc(), _x.pk.desc()).offset(SEARCHED - 1).limit(1)
    ).one_or_none()
    statement = _listed(project_pk, wanted, paging)
    if end is not None:
        statement = statement.where(tuple_(*position) >= tuple_(*end))
    page = paging.page(_LIST, _shown(connection, statement), lambda x: (x.started_at, x.pk))
    if page.next_cursor is None and end is not None:
        return Page(page.items, cursor_after(_LIST, *end))
    return page


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


def known(connection: Connection, project_pk: int, execution_ids: Collection[str]) -> set[str]:
    """Tell which of some executions the project has."""
    statement = select(_x.execution_id).where(
        _x.project_pk == project_pk, _x.execution_id.in_(execution_ids)
    )
    return set(connection.execute(statement).scalars())


def events_of(connection: Connection, execution_pk: int, limit: int) -> list[Event]:
    """Read an execution's first events in their order."""
    payload = cast(events.c.payload, Text).label("payload")
    statement = _in_order(execution_pk, payload).limit(limit)
    return [
        Event(**{**row, "payload": Raw(row["payload"] or "null")})
        for row in connection.execute(statement).mappings()
    ]


def timeline(
    connection: Connection, execution_pk: int, *, offset: int, limit: int, payload_chars: int
) -> list[TimelineEvent]:
    """Read some of an execution's events in their order, each payload indented and cut."""
    e = events.c
    text = func.coalesce(func.jsonb_pretty(e.payload), "null")
    statement = _in_order(
        execution_pk,
        e.evaluator_id,
        e.metric_type,
        e.score,
        e.passed,
        func.left(text, payload_chars).label("payload"),
        func.length(text).label("payload_chars"),
    )
    rows = connection.execute(statement.offset(offset).limit(limit)).mappings()
    return [TimelineEvent(**row) for row in rows]


def has_any(connection: Connection, project_pk: int) -> bool:
    """Tell whether a project has sent anything yet."""
    return bool(connection.execute(_HAS_ANY, {"project": project_pk}).scalar_one())


def _in_order(execution_pk: int, *more: ColumnElement[Any]) -> Select[Any]:
    e = events.c
    return (
        select(
            e.event_id, e.event_type, e.sequence, e.timestamp, e.received_at, e.duration_ms, *more
        )
        .where(e.execution_pk == execution_pk)
        .order_by(e.sequence, e.timestamp, e.event_id)
    )


def _listed(project_pk: int, wanted: ExecutionFilter, paging: Paging) -> Select[Any]:
    return (
        select(*_SHOWN)
        .where(_x.project_pk == project_pk, *_conditions(wanted))
        .where(*paging.after(_LIST, _x.started_at, _x.pk))
        .order_by(_x.started_at.desc(), _x.pk.desc())
        .limit(paging.limit + 1)
    )


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

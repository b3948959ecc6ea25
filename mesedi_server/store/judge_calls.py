"""The ledger of judge calls on PostgreSQL, by the rules of `evaluators.ledger`: one row a call, finished once.

A call is reserved in a transaction that holds the project's judge settings (`judge_settings.locked`), so that no two
processes spend the same budget.
"""

import json
from dataclasses import asdict
from datetime import datetime, timedelta
from uuid import uuid4

from msgspec import Struct
from sqlalchemy import ColumnElement, delete, func, insert, not_, select, update

from evaluators.ledger import (
    ABANDONED,
    RESPONSE_SAVED,
    RUNNING,
    UNKNOWN_OUTCOME,
    Outcome,
    cache_key,
)
from mesedi_server.errors import ConflictError, NotFoundError
from mesedi_server.store import audit_log, judge_work
from mesedi_server.store.assessments import FAITHFULNESS
from mesedi_server.store.database import Connection
from mesedi_server.store.projects import Project
from mesedi_server.store.tables import judge_calls

COUNTED_DAYS = 33
"""Longer than any month, in any time zone."""
MAX_REPLIES = 1_000
"""Calls whose replies are looked at, the newest."""
UNKNOWN_SHOWN = 50
"""Calls of unknown outcome that are listed, the newest."""

_c = judge_calls.c


class Call(Struct, frozen=True, kw_only=True):
    """A call as it is stored; `judge`, `request`, `reply` and `settlement` are JSON texts."""

    call_id: str
    cache_key: str
    judge: str
    request: str
    status: str
    reply: str | None
    exception_type: str | None
    http_status: int | None
    execution_id: str | None
    answer_id: str | None
    """The answer that it was reserved for; None: an older server reserved it, or its texts are deleted."""
    started_at: datetime
    finished_at: datetime | None
    settlement: str | None

    @property
    def settlement_reason(self) -> str | None:
        """What a person gave as the reason, if one settled the call."""
        return None if self.settlement is None else str(json.loads(self.settlement)["reason"])


class Spent(Struct, frozen=True):
    """Calls of a project that are reserved or made; those that were never sent are none."""

    today: int
    this_month: int
    under_way: int
    cost_today_micros: int
    cost_this_month_micros: int
    """What they cost, else what they may cost."""
    without_cost_this_month: int
    """Calls that nobody had said a cost for; the costs are without them."""


class Unknown(Struct, frozen=True):
    """A call whose outcome nobody knows, for a person to settle."""

    call_id: str
    started_at: datetime
    exception_type: str | None
    http_status: int | None
    execution_id: str | None
    answer_id: str | None


class Replies(Struct, frozen=True):
    """What the latest replies of a judge were worth, of the last 24 hours and at most MAX_REPLIES calls."""

    count: int
    """Replies that have been read."""
    without_verdict: int
    """Of these, those that were no verdict."""
    last_reason: str | None
    """Why the newest of those was none."""

    @property
    def are_mostly_useless(self) -> bool:
        """Whether more than half of them were no verdict."""
        return self.without_verdict * 2 > self.count


_COLUMNS = [_c[name] for name in Call.__struct_fields__]

# Days and months begin at the midnights of the project's zone.
_SPENT = """
WITH begins AS MATERIALIZED (
    SELECT date_trunc('day', now() AT TIME ZONE time_zone) AT TIME ZONE time_zone AS day,
        date_trunc('month', now() AT TIME ZONE time_zone) AT TIME ZONE time_zone AS month
    FROM projects WHERE pk = %(project)s)
SELECT count(*) FILTER (WHERE started_at >= day), count(started_at),
    (SELECT count(*) FROM judge_calls WHERE project_pk = %(project)s AND status = 'running'),
    coalesce(sum(cost) FILTER (WHERE started_at >= day), 0)::bigint, coalesce(sum(cost), 0)::bigint,
    count(started_at) - count(cost)
FROM begins LEFT JOIN (
    SELECT project_pk, started_at, coalesce(actual_cost_micros, reserved_cost_micros) AS cost FROM judge_calls) c
    ON c.project_pk = %(project)s AND c.started_at >= month
"""

_ABANDON = """
UPDATE judge_calls SET status = %(unknown)s, exception_type = %(abandoned)s, finished_at = now()
WHERE status = 'running' AND started_at < now() - %(age)s * interval '1 second'
"""

# By the calls: a project whose answers are all assessed has far more assessments than those of its judge. MATERIALIZED
# and OFFSET keep each look at an index, one call after the other.
_REPLIES = f"""
WITH latest AS MATERIALIZED (
    SELECT execution_id, answer_id, started_at, status, settlement FROM judge_calls
    WHERE project_pk = %(project)s AND started_at > now() - interval '1 day'
    ORDER BY started_at DESC LIMIT {MAX_REPLIES}
)
SELECT count(*), count(*) FILTER (WHERE outcome = 'invalid'),
    (array_agg(reason ORDER BY started_at DESC) FILTER (WHERE outcome = 'invalid'))[1]
FROM (SELECT * FROM latest WHERE status = '{RESPONSE_SAVED}' AND settlement IS NULL) c
CROSS JOIN LATERAL (SELECT pk FROM executions
    WHERE project_pk = %(project)s AND execution_id = c.execution_id OFFSET 0) x
CROSS JOIN LATERAL (SELECT outcome, reason FROM assessments
    WHERE execution_pk = x.pk AND answer_id = c.answer_id AND evaluator = '{FAITHFULNESS}' AND revision = %(revision)s
    OFFSET 0) a
"""


def spent(connection: Connection, project_pk: int) -> Spent:
    """Count the calls of a project's day and month, in its time zone, and what they cost."""
    return Spent(*connection.exec_driver_sql(_SPENT, {"project": project_pk}).one())


def of_key(connection: Connection, project_pk: int, key: str) -> Call | None:
    """Read the one call with this cache key."""
    return _one(connection, project_pk, _c.cache_key == key)


def of_id(connection: Connection, project_pk: int, call_id: str) -> Call:
    """Read a call.

    Raises:
        NotFoundError: the project has none of this id.
    """
    call = _one(connection, project_pk, _c.call_id == call_id)
    if call is None:
        raise NotFoundError("judge call")
    return call


def reserve(
    connection: Connection,
    project_pk: int,
    judge: str,
    request: str,
    about: judge_work.Waiting,
    *,
    bound_micros: int | None,
) -> str:
    """Store a call that is about to be sent, and return its id; a second one with its key is an error.

    Args:
        connection: an open transaction.
        project_pk: whose call.
        judge: the contract of whom is asked, as `ledger.contract_json` writes it.
        request: what is asked, as `ledger.request_json` writes it.
        about: the answer that it is asked about.
        bound_micros: the most that it can cost, which it is charged until its cost is known; None: nobody knows.
    """
    call_id = f"call-{uuid4().hex}"
    connection.execute(
        insert(judge_calls).values(
            project_pk=project_pk,
            call_id=call_id,
            cache_key=cache_key(request, judge),
            judge=judge,
            request=request,
            status=RUNNING,
            reserved_cost_micros=bound_micros,
            execution_id=about.execution_id,
            answer_id=about.answer_id,
        )
    )
    return call_id


def release(connection: Connection, call_id: str) -> None:
    """Take back a reservation of which nothing was sent."""
    connection.execute(delete(judge_calls).where(_c.call_id == call_id, _c.status == RUNNING))


def finish(
    connection: Connection, call_id: str, outcome: Outcome, http_status: int | None = None
) -> bool:
    """Store how a running call ended; False: it has ended already, and this comes too late."""
    changed = connection.execute(
        update(judge_calls)
        .where(_c.call_id == call_id, _c.status == RUNNING)
        .values(**asdict(outcome), http_status=http_status, finished_at=func.now())
    )
    return changed.rowcount == 1


def abandon(connection: Connection, *, age_s: float) -> int:
    """End the calls that dead processes left behind, and return how many: nobody knows what became of them.

    Args:
        connection: an open transaction.
        age_s: calls that are older cannot be under way.
    """
    parameters = {"unknown": UNKNOWN_OUTCOME, "abandoned": ABANDONED, "age": age_s}
    return connection.exec_driver_sql(_ABANDON, parameters).rowcount


def settle(
    connection: Connection,
    project: Project,
    call_id: str,
    outcome: Outcome,
    reason: str,
    *,
    actor: str,
) -> None:
    """Store what a person found out about a call whose outcome was unknown; it is never sent again.

    The answers that waited for it are read anew.

    Raises:
        NotFoundError: there is no such call.
        ConflictError: its outcome is known.
    """
    call = of_id(connection, project.pk, call_id)
    settlement = {"reason": reason, "settled_by": actor, "status": call.status}
    changed = connection.execute(
        update(judge_calls)
        .where(_c.call_id == call_id, _c.status == UNKNOWN_OUTCOME)
        .values(**asdict(outcome), finished_at=func.now(), settlement=json.dumps(settlement))
    )
    if changed.rowcount != 1:
        raise ConflictError(f"the outcome of {call_id} is known: {call.status}; nothing to settle")
    judge_work.queue_unknown(connection, project.pk, call.cache_key)
    details = {"reason": reason, "status": outcome.status}
    audit_log.note(
        connection, project.pk, actor, "judge.call_settled", subject=call_id, details=details
    )


def forget_old(connection: Connection, project_pk: int, *, days: int) -> None:
    """Delete the texts of calls that are older than a project keeps its executions, and later the calls.

    Calls count in the budgets of their month, so that they stay for `COUNTED_DAYS` in any case.
    """
    is_old = (
        _c.project_pk == project_pk,
        _c.started_at < func.now() - timedelta(days=days),
        _c.status != RUNNING,
    )
    is_counted = _c.started_at >= func.now() - timedelta(days=COUNTED_DAYS)
    connection.execute(delete(judge_calls).where(*is_old, not_(is_counted)))
    connection.execute(
        update(judge_calls)
        .where(*is_old, is_counted, _c.request != "")
        .values(request="", reply=None, execution_id=None, answer_id=None)
    )


def unknown(connection: Connection, project_pk: int) -> tuple[int, list[Unknown]]:
    """Count the calls whose outcome nobody knows, and list the newest."""
    are_unknown = (_c.project_pk == project_pk, _c.status == UNKNOWN_OUTCOME)
    count = connection.execute(select(func.count()).where(*are_unknown)).scalar_one()
    rows = connection.execute(
        select(*(_c[name] for name in Unknown.__struct_fields__))
        .where(*are_unknown)
        .order_by(_c.started_at.desc(), _c.pk.desc())
        .limit(UNKNOWN_SHOWN)
    )
    return count, [Unknown(*row) for row in rows]


def last_reply_at(connection: Connection, project_pk: int) -> datetime | None:
    """Tell when a judge replied last; what a person entered does not count."""
    at: datetime | None = connection.execute(
        select(_c.finished_at)
        .where(_c.project_pk == project_pk, _c.status == RESPONSE_SAVED, _c.settlement.is_(None))
        .order_by(_c.started_at.desc())
        .limit(1)
    ).scalar_one_or_none()
    return at


def latest_replies(connection: Connection, project_pk: int, *, revision: str) -> Replies:
    """Tell what the latest replies of a judge were worth, whose assessments have this revision.

    What a person entered does not count, nor what another assessment has replaced since.
    """
    parameters = {"project": project_pk, "revision": revision}
    return Replies(*connection.exec_driver_sql(_REPLIES, parameters).one())


def _one(connection: Connection, project_pk: int, condition: ColumnElement[bool]) -> Call | None:
    statement = select(*_COLUMNS).where(_c.project_pk == project_pk, condition)
    row = connection.execute(statement).mappings().one_or_none()
    return None if row is None else Call(**row)

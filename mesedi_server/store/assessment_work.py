"""Executions whose answers are to be looked at: who notes them, and who takes them.

Rows are only added, never updated, so that an ingest or an examination waits for nobody. Whoever looks at an execution
takes all rows of it that it sees; one that is added meanwhile stays, and the execution is looked at again. Only the
oldest row of an execution can be taken, so that no two workers look at one execution at once.
"""

from collections.abc import Collection
from datetime import datetime

from msgspec import Struct

from mesedi_server.store.database import Connection
from mesedi_server.store.json_text import json_text


class DueLook(Struct, frozen=True):
    """An execution that this transaction has taken."""

    execution_pk: int
    project_pk: int
    due_at: datetime
    assesses_all: bool
    """The project wants all answers assessed, and the outcome as scores."""
    is_wanted: bool
    """Its answers are to be assessed: it fails, or the project assesses all, or grounding has assessed some before."""


# Locked, too, is the execution, against its deletion alone: what refers to it can be written then. LIMIT, OFFSET and
# ARRAY keep each look at an index: hashed, a look would cost as much as everything that is stored.
_CLAIM = """
WITH claimed AS MATERIALIZED (
    SELECT w.execution_pk, x.project_pk, w.due_at
    FROM assessment_work w JOIN executions x ON x.pk = w.execution_pk
    WHERE w.due_at <= now() AND NOT EXISTS (
        SELECT FROM assessment_work earlier WHERE earlier.execution_pk = w.execution_pk AND earlier.pk < w.pk)
    ORDER BY w.due_at, w.pk LIMIT %(limit)s
    FOR UPDATE OF w SKIP LOCKED FOR KEY SHARE OF x SKIP LOCKED
), gone AS (
    DELETE FROM assessment_work WHERE pk = ANY (ARRAY(SELECT w.pk FROM claimed c CROSS JOIN LATERAL (
        SELECT pk FROM assessment_work WHERE execution_pk = c.execution_pk OFFSET 0) w))
)
SELECT c.execution_pk, c.project_pk, c.due_at, p.assesses_all,
    p.assesses_all OR coalesce(
        (SELECT true FROM assessments a WHERE a.execution_pk = c.execution_pk AND a.evaluator = 'grounding' LIMIT 1),
        (SELECT true FROM occurrences o JOIN failure_groups g ON g.pk = o.group_pk
            WHERE o.execution_pk = c.execution_pk AND g.failure_class = %(failure_class)s LIMIT 1), false)
FROM claimed c JOIN projects p ON p.pk = c.project_pk
ORDER BY c.due_at, c.execution_pk
"""

_PUT_BACK = """
INSERT INTO assessment_work (execution_pk, due_at)
SELECT execution_pk, due_at FROM jsonb_to_recordset(%(looks)s::jsonb) AS l (execution_pk bigint, due_at timestamptz)
"""

_PUT_OFF = """
INSERT INTO assessment_work (execution_pk, due_at)
SELECT jsonb_array_elements_text(%(executions)s::jsonb)::bigint, now() + %(wait)s * interval '1 second'
"""

_LARGE_LOCK = 7_043_911
"""Key of the advisory lock that whoever assesses a large answer holds; no other lock of ours is advisory."""

# An execution that has been assessed is kept up to date by its answers as they come. Other rows of the execution do not
# count here: a worker may have taken them before the execution failed.
_NOTE_EXAMINED = """
INSERT INTO assessment_work (execution_pk)
SELECT x.pk
FROM jsonb_to_recordset(%(executions)s::jsonb) AS e (pk bigint, fails boolean)
JOIN executions x ON x.pk = e.pk JOIN projects p ON p.pk = x.project_pk
WHERE (e.fails OR p.assesses_all)
    AND (SELECT true FROM events a WHERE a.execution_pk = x.pk AND a.event_type = 'answer' LIMIT 1)
    AND ((SELECT true FROM assessments s WHERE s.execution_pk = x.pk AND s.evaluator = 'grounding'
            AND s.revision = %(revision)s LIMIT 1) IS NULL
        OR p.assesses_all AND (SELECT true FROM events f
            WHERE f.execution_pk = x.pk AND f.evaluator_id = %(feedback)s LIMIT 1) IS NULL)
"""


class ExaminedExecution(Struct, frozen=True):
    """An execution, and whether an examination found that its answers fail."""

    pk: int
    fails: bool


def note_examined(
    connection: Connection,
    examined: Collection[ExaminedExecution],
    *,
    revision: str,
    feedback: str,
) -> None:
    """Note the executions whose answers are to be assessed after their examination.

    Args:
        connection: the examination's transaction.
        examined: what was examined.
        revision: that of the evaluator: answers that it has assessed are left alone.
        feedback: evaluator of the scores that tell the outcome, where a project assesses all answers.
    """
    parameters = {
        "executions": json_text(list(examined)),
        "revision": revision,
        "feedback": feedback,
    }
    connection.exec_driver_sql(_NOTE_EXAMINED, parameters)


def claim(connection: Connection, *, failure_class: str, limit: int) -> list[DueLook]:
    """Take executions to look at, those that have waited longest first.

    They are free again if the transaction does not commit.

    Args:
        connection: an open transaction.
        failure_class: the class of the groups whose members are to be assessed.
        limit: executions at most.
    """
    parameters = {"failure_class": failure_class, "limit": limit}
    return [DueLook(*row) for row in connection.exec_driver_sql(_CLAIM, parameters)]


def put_back(connection: Connection, looks: Collection[DueLook]) -> None:
    """Leave executions that were taken to the next look."""
    if looks:
        connection.exec_driver_sql(_PUT_BACK, {"looks": json_text(list(looks))})


def put_off(connection: Connection, execution_pks: Collection[int], *, wait_s: float) -> None:
    """Leave executions that were taken alone for a while."""
    if execution_pks:
        parameters = {"executions": json_text(list(execution_pks)), "wait": wait_s}
        connection.exec_driver_sql(_PUT_OFF, parameters)


def may_take_large(connection: Connection) -> bool:
    """Ask to assess large answers in this transaction: of all that are open, one may."""
    parameters = {"key": _LARGE_LOCK}
    statement = "SELECT pg_try_advisory_xact_lock(%(key)s)"
    return bool(connection.exec_driver_sql(statement, parameters).scalar_one())


def is_due(connection: Connection) -> bool:
    """Tell whether there is anything to look at."""
    statement = "SELECT EXISTS (SELECT FROM assessment_work WHERE due_at <= now())"
    return bool(connection.exec_driver_sql(statement).scalar_one())

"""The answers of a group and, for contrast, of executions that carry its pair and did not fail, for datasets.

Everything is read in steps: executions some dozens at a time, texts some thousand characters at a time. No statement
grows with the group.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from mesedi_server.store.assessments import ANSWER_ID, MAX_ID_CHARS
from mesedi_server.store.database import Connection
from mesedi_server.store.failure_groups import FailureGroup
from mesedi_server.store.json_text import json_text

MAX_ANSWERS = 50
"""Answers of one execution, its last ones."""
MEMBERS = 50
"""Executions of a group that one statement reads."""
CARRIERS = 500
"""Executions with a pair that one statement looks at."""

# A part of texts is fetched at once: these are compressed, so they may become some hundred times as much.
_PART_BYTES = 32 * 1024
_PART_ANSWERS = 50

_MEMBERS = """
SELECT o.execution_pk, x.execution_id, o.release, o.rule, o.occurred_at
FROM occurrences o JOIN executions x ON x.pk = o.execution_pk
WHERE o.group_pk = %(group)s AND (%(at)s::timestamptz IS NULL OR (o.occurred_at, o.execution_pk) < (%(at)s, %(pk)s))
ORDER BY o.occurred_at DESC, o.execution_pk DESC LIMIT %(limit)s
"""

_COUNTS = """
SELECT count(*), count(*) FILTER (WHERE NOT EXISTS (
    SELECT FROM events e WHERE e.execution_pk = o.execution_pk AND e.event_type = 'answer'))
FROM (SELECT execution_pk FROM occurrences WHERE group_pk = %(group)s
    ORDER BY occurred_at DESC, execution_pk DESC LIMIT %(limit)s) AS o
"""

_CARRIERS = """
SELECT r.execution_pk, x.execution_id, x.release,
    NOT EXISTS (SELECT FROM occurrences o WHERE o.group_pk = %(group)s AND o.execution_pk = r.execution_pk)
    AND EXISTS (SELECT FROM events e WHERE e.execution_pk = r.execution_pk AND e.event_type = 'answer')
FROM (SELECT execution_pk FROM score_rollups
    WHERE project_pk = %(project)s AND evaluator_id = %(evaluator)s AND metric_type = %(metric)s
        AND execution_pk < %(below)s
    ORDER BY execution_pk DESC LIMIT %(limit)s) AS r
JOIN executions x ON x.pk = r.execution_pk
ORDER BY r.execution_pk DESC
"""

# Of several events with one answer_id the last counts. What the pair says of an answer is its worst score that names
# the answer, or else its worst that names none.
_FOUND = f"""
WITH wanted AS MATERIALIZED (
    SELECT pk::bigint, place FROM jsonb_array_elements_text(%(executions)s::jsonb) WITH ORDINALITY AS w (pk, place)
), given AS MATERIALIZED (
    SELECT wanted.place, e.* FROM wanted CROSS JOIN LATERAL (
        SELECT DISTINCT ON ({ANSWER_ID}) execution_pk, event_id, sequence, timestamp, {ANSWER_ID} AS answer_id,
            coalesce(pg_column_size(payload), 0) AS bytes
        FROM (SELECT execution_pk, payload, sequence, timestamp, event_id FROM events
            WHERE execution_pk = wanted.pk AND event_type = 'answer'
            ORDER BY sequence DESC, timestamp DESC, event_id DESC LIMIT {MAX_ANSWERS}) AS latest
        ORDER BY {ANSWER_ID}, sequence DESC, timestamp DESC, event_id DESC) AS e
), said AS MATERIALIZED (
    SELECT DISTINCT ON (execution_pk, answer_id) execution_pk, answer_id, score, passed
    FROM wanted JOIN events ON execution_pk = wanted.pk,
        LATERAL (SELECT left(payload ->> 'answer_id', {MAX_ID_CHARS}) AS answer_id) AS judged
    WHERE event_type = 'eval_score' AND evaluator_id = %(evaluator)s AND metric_type = %(metric)s
    ORDER BY execution_pk, answer_id, passed IS FALSE DESC,
        CASE WHEN higher_is_better THEN score ELSE -score END NULLS LAST, sequence, timestamp, event_id
)
SELECT g.execution_pk, g.event_id, g.bytes, own.execution_pk IS NOT NULL,
    CASE WHEN own.execution_pk IS NULL THEN other.score ELSE own.score END,
    CASE WHEN own.execution_pk IS NULL THEN other.passed ELSE own.passed END
FROM given g
LEFT JOIN said own ON own.execution_pk = g.execution_pk AND own.answer_id = g.answer_id
LEFT JOIN said other ON other.execution_pk = g.execution_pk AND other.answer_id IS NULL
ORDER BY g.place, g.sequence, g.timestamp, g.event_id
"""

_TEXTS = """
SELECT event_id, coalesce(payload ->> 'answer_id', ''), payload ->> 'question', coalesce(payload ->> 'answer', ''),
    CASE WHEN malformed IS NULL AND jsonb_typeof(payload -> 'context') = 'object' THEN (payload -> 'context')::text
        ELSE 'null' END,
    malformed, received_at
FROM events CROSS JOIN LATERAL (SELECT CASE
    WHEN jsonb_typeof(payload -> 'answer') IS DISTINCT FROM 'string' THEN 'the answer is not text'
    WHEN jsonb_typeof(payload -> 'question') NOT IN ('string', 'null') THEN 'the question is not text'
    END AS malformed) AS form
WHERE project_pk = %(project)s AND event_id IN (SELECT jsonb_array_elements_text(%(events)s::jsonb))
"""


class Counts(NamedTuple):
    """How many executions a dataset is about, and how many of them have sent no answer."""

    executions: int
    without_answer: int


class Carrier(NamedTuple):
    """An execution whose answers a dataset wants; `rule` is why it is in the group, None if it is not."""

    execution_pk: int
    execution_id: str
    release: str | None
    rule: str | None = None
    occurred_at: datetime | None = None


class Found(NamedTuple):
    """An answer, without its texts, and what the group's pair says of it."""

    execution_pk: int
    event_id: str
    bytes: int
    is_named: bool
    """A score of the pair says that it is of this answer."""
    score: float | None
    passed: bool | None


class Texts(Struct, frozen=True):
    """An answer's texts as they were recorded; `context` is JSON: an object or null."""

    answer_id: str
    question: str | None
    answer: str
    context: str
    malformed: str | None
    """Why no evaluator can judge it; then `context` is null."""
    received_at: datetime


def counts(connection: Connection, group: FailureGroup, limit: int) -> Counts:
    """Count the newest executions of a group, `limit` at most."""
    parameters = {"group": group.pk, "limit": limit}
    return Counts(*connection.exec_driver_sql(_COUNTS, parameters).one())


def members(
    connection: Connection, group: FailureGroup, after: Carrier | None, limit: int
) -> list[Carrier]:
    """Read executions of a group, the newest first, MEMBERS or `limit` at most."""
    parameters = {
        "group": group.pk,
        "at": None if after is None else after.occurred_at,
        "pk": None if after is None else after.execution_pk,
        "limit": min(limit, MEMBERS),
    }
    return [Carrier(*row) for row in connection.exec_driver_sql(_MEMBERS, parameters)]


def carriers(
    connection: Connection, project_pk: int, group: FailureGroup, below: int
) -> tuple[list[Carrier], int | None]:
    """Look at CARRIERS executions with the group's pair, the newest first.

    Args:
        connection: an open transaction.
        project_pk: the project.
        group: the group.
        below: the execution before which to look.

    Returns:
        Those that are no members and have sent an answer, and where to go on; None: there are no more.
    """
    rows = connection.exec_driver_sql(
        _CARRIERS, {**_pair(group), "project": project_pk, "below": below, "limit": CARRIERS}
    ).all()
    found = [Carrier(*values) for *values, is_wanted in rows if is_wanted]
    return found, rows[-1].execution_pk if len(rows) == CARRIERS else None


def answers_of(
    connection: Connection, group: FailureGroup, executions: Collection[Carrier]
) -> list[Found]:
    """Find the answers of some executions, in the order in which these and those were given."""
    wanted = json_text([one.execution_pk for one in executions])
    rows = connection.exec_driver_sql(_FOUND, {**_pair(group), "executions": wanted})
    return [Found(*row) for row in rows]


def parts(found: Sequence[Found]) -> list[list[Found]]:
    """Cut answers into parts whose texts fit into memory together."""
    cut: list[list[Found]] = []
    size = 0
    for one in found:
        if not cut or size + one.bytes > _PART_BYTES or len(cut[-1]) == _PART_ANSWERS:
            cut.append([])
            size = 0
        cut[-1].append(one)
        size += one.bytes
    return cut


def texts(connection: Connection, project_pk: int, found: Collection[Found]) -> dict[str, Texts]:
    """Read the texts of some answers, by event."""
    events = json_text([one.event_id for one in found])
    rows = connection.exec_driver_sql(_TEXTS, {"project": project_pk, "events": events})
    return {event_id: Texts(*values) for event_id, *values in rows}


def _pair(group: FailureGroup) -> dict[str, object]:
    return {"group": group.pk, "evaluator": group.evaluator_id, "metric": group.metric_type}

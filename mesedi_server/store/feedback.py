"""What grounding found, as ordinary scores of the executions: of projects that assess all answers.

The scores follow from the assessments alone. Their ids follow from execution, answer and metric, so that a changed
answer changes its scores, and writing them twice changes nothing.
"""

from collections.abc import Collection

from msgspec import Struct

from mesedi_server.store.database import Connection
from mesedi_server.store.json_text import json_text

EVALUATOR = "mesedi/grounding"

_SAID = f"""said AS MATERIALIZED (
    SELECT a.project_pk, a.execution_pk, a.answer_id, m.metric, m.good, m.total, m.told, '{EVALUATOR}:' ||
        encode(sha256(convert_to(a.execution_pk || ' ' || m.metric || ' ' || a.answer_id, 'UTF8')), 'hex') AS event_id
    FROM jsonb_to_recordset(%(answers)s::jsonb) AS given (execution_pk bigint, answer_id text)
    JOIN assessments a USING (execution_pk)
    CROSS JOIN LATERAL (VALUES
        ('quantity_traceability', a.quantities - a.unmatched - a.ambiguous, a.quantities,
            CASE a.quantities WHEN 1 THEN 'quantity' ELSE 'quantities' END || ' found in a passage or in the question'),
        ('citation_resolution', a.citations - a.unresolved, a.citations,
            CASE a.citations WHEN 1 THEN 'citation' ELSE 'citations' END || ' traced to a passage that is there')
    ) AS m (metric, good, total, told)
    WHERE a.evaluator = 'grounding' AND (given.answer_id IS NULL OR given.answer_id = a.answer_id)
)"""

_WRITE = f"""
WITH {_SAID}, gone AS (
    DELETE FROM events e USING said s
    WHERE s.total = 0 AND (e.project_pk, e.event_id, e.execution_pk) = (s.project_pk, s.event_id, s.execution_pk)
    RETURNING e.execution_pk
), written AS (
    INSERT INTO events AS e (project_pk, event_id, execution_pk, event_type, evaluator_id, metric_type, score,
        higher_is_better, payload)
    SELECT project_pk, event_id, execution_pk, 'eval_score', '{EVALUATOR}', metric, good::float8 / total, true,
        jsonb_build_object('evaluator_id', '{EVALUATOR}', 'metric_type', metric, 'score', good::float8 / total,
            'higher_is_better', true, 'answer_id', answer_id, 'reason', good || ' of ' || total || ' ' || told)
    FROM said WHERE total > 0 ORDER BY event_id
    ON CONFLICT (project_pk, event_id) DO UPDATE
        SET score = excluded.score, payload = excluded.payload, timestamp = now(), received_at = now()
        WHERE e.execution_pk = excluded.execution_pk AND e.payload <> excluded.payload
    RETURNING e.execution_pk
)
SELECT execution_pk FROM gone UNION SELECT execution_pk FROM written
"""

_REMOVE = f"""
WITH {_SAID}
DELETE FROM events e USING said s
WHERE (e.project_pk, e.event_id, e.execution_pk) = (s.project_pk, s.event_id, s.execution_pk)
RETURNING e.execution_pk
"""

# In the order in which batches of events lock them.
_MAKE_DUE = """
WITH locked AS MATERIALIZED (
    SELECT pk FROM executions WHERE pk IN (SELECT jsonb_array_elements_text(%(executions)s::jsonb)::bigint)
    ORDER BY project_pk, execution_id FOR NO KEY UPDATE
)
UPDATE executions x SET detect_due_at = now() FROM locked l WHERE x.pk = l.pk AND x.detect_due_at IS NULL
"""


class AnswerKey(Struct, frozen=True):
    """One answer of an execution; without an id, all that have been assessed."""

    execution_pk: int
    answer_id: str | None = None


def write(connection: Connection, execution_pks: Collection[int]) -> None:
    """Make the scores of executions what their assessments say, and these executions due for examination."""
    answers = [AnswerKey(pk) for pk in execution_pks]
    _change(connection, _WRITE, answers)


def remove(connection: Connection, answers: Collection[AnswerKey]) -> None:
    """Take back scores of answers as they were, and make their executions due for examination."""
    _change(connection, _REMOVE, answers)


def _change(connection: Connection, statement: str, answers: Collection[AnswerKey]) -> None:
    if not answers:
        return
    rows = connection.exec_driver_sql(statement, {"answers": json_text(list(answers))})
    changed = sorted(set(rows.scalars()))
    if changed:
        connection.exec_driver_sql(_MAKE_DUE, {"executions": json_text(changed)})

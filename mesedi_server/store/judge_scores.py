"""What a judge said, as ordinary scores of the executions, so that they are judged by floors like all others.

Their ids follow from execution, answer and metric: writing them twice changes nothing, and a changed answer changes
its scores.
"""

from collections.abc import Collection

from msgspec import Struct

from mesedi_server.store.database import Connection
from mesedi_server.store.json_text import json_text

EVALUATOR = "mesedi/faithfulness"
METRICS = ("claim_support", "correctness")


class JudgeScore(Struct, frozen=True, kw_only=True):
    """One score of an answer."""

    metric: str
    """One of METRICS."""
    score: float
    passed: bool
    highest: int
    """Best score; the worst is 0."""
    reason: str


_ID = f"""'{EVALUATOR}:' || encode(sha256(convert_to(
    %(execution)s::bigint || ' ' || metric || ' ' || %(answer)s::text, 'UTF8')), 'hex')"""

_WRITE = f"""
WITH said AS MATERIALIZED (
    SELECT {_ID} AS event_id, r.* FROM jsonb_to_recordset(%(scores)s::jsonb) AS r (
        metric text, score float8, passed boolean, highest float8, reason text)
), gone AS (
    DELETE FROM events WHERE project_pk = %(project)s AND execution_pk = %(execution)s AND event_id IN (
        SELECT {_ID} FROM unnest(%(metrics)s::text[]) AS m (metric) WHERE metric NOT IN (SELECT metric FROM said))
    RETURNING 1
), written AS (
    INSERT INTO events AS e (project_pk, event_id, execution_pk, event_type, evaluator_id, metric_type, score, passed,
        higher_is_better, scale_min, scale_max, payload)
    SELECT %(project)s, event_id, %(execution)s, 'eval_score', '{EVALUATOR}', metric, score, passed, true, 0, highest,
        jsonb_build_object('evaluator_id', '{EVALUATOR}', 'metric_type', metric, 'score', score, 'passed', passed,
            'higher_is_better', true, 'scale', jsonb_build_array(0, highest), 'answer_id', %(answer)s::text,
            'reason', reason)
    FROM said ORDER BY event_id
    ON CONFLICT (project_pk, event_id) DO UPDATE SET score = excluded.score, passed = excluded.passed,
        payload = excluded.payload, timestamp = now(), received_at = now()
        WHERE e.execution_pk = excluded.execution_pk AND e.payload <> excluded.payload
    RETURNING 1
)
SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM written)
"""

_MAKE_DUE = """
UPDATE executions SET detect_due_at = now() WHERE pk = %(execution)s AND detect_due_at IS NULL
"""


def write(
    connection: Connection,
    project_pk: int,
    execution_pk: int,
    answer_id: str,
    scores: Collection[JudgeScore],
) -> None:
    """Make the scores of an answer these alone, and its execution due for examination if that changes any."""
    parameters = {
        "project": project_pk,
        "execution": execution_pk,
        "answer": answer_id,
        "scores": json_text(list(scores)),
        "metrics": list(METRICS),
    }
    if connection.exec_driver_sql(_WRITE, parameters).scalar_one():
        connection.exec_driver_sql(_MAKE_DUE, {"execution": execution_pk})

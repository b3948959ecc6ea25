"""Events: one statement stores a batch; another reads what detectors need."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from detectors import EVENT_TYPES, EvalScore, HumanIntervention, ValidatorResult
from mesedi_server.store.database import Connection
from mesedi_server.store.json_text import json_text, read_json

_DETECTED_TYPES = "{" + ",".join(sorted(EVENT_TYPES)) + "}"

# One statement: the executions are made or locked, in key order, and marked due with the events that make them so.
# A late event makes an examined execution due again after a moment; an open one waits until it is quiet, and
# `due_work.claim_due` puts it off while it is not, so that its due time needs no update with each event.
_STORE = """
WITH batch AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS e (
        event_id text, execution_id text, event_type text, sequence bigint, timestamp timestamptz,
        duration_ms bigint, payload jsonb, evaluator_id text, metric_type text, score float8, passed boolean,
        higher_is_better boolean, scale_min float8, scale_max float8)
), touched AS (
    INSERT INTO executions AS x (project_pk, execution_id, last_event_at, detect_due_at)
    SELECT %(project)s, execution_id, now(),
        CASE WHEN bool_or(event_type = ANY (%(types)s::text[])) THEN now() + %(settle)s * interval '1 second' END
    FROM batch GROUP BY execution_id ORDER BY execution_id
    ON CONFLICT (project_pk, execution_id) DO UPDATE SET
        last_event_at = excluded.last_event_at,
        detect_due_at = CASE
            WHEN excluded.detect_due_at IS NULL OR x.detect_due_at IS NOT NULL THEN x.detect_due_at
            WHEN x.examined_at IS NULL THEN excluded.detect_due_at
            ELSE now() + %(debounce)s * interval '1 second' END
    RETURNING x.pk, x.execution_id, x.detect_due_at, x.examined_at
), {answers}stored AS (
    INSERT INTO events (project_pk, event_id, execution_pk, event_type, sequence, timestamp, duration_ms, payload,
        evaluator_id, metric_type, score, passed, higher_is_better, scale_min, scale_max)
    SELECT %(project)s, b.event_id, t.pk, b.event_type, coalesce(b.sequence, 0), coalesce(b.timestamp, now()),
        b.duration_ms, b.payload, b.evaluator_id, b.metric_type, b.score, b.passed, b.higher_is_better,
        b.scale_min, b.scale_max
    FROM batch b JOIN touched t USING (execution_id) ORDER BY b.event_id
    ON CONFLICT DO NOTHING RETURNING 1
)
SELECT (SELECT count(*) FROM stored),
    EXISTS (SELECT FROM touched WHERE examined_at IS NOT NULL AND detect_due_at IS NOT NULL)
"""

# An answer that comes before the examination is noted by that, if it fails.
_NOTED_ANSWERS = """noted AS (
    INSERT INTO assessment_work (execution_pk)
    SELECT DISTINCT t.pk FROM batch b JOIN touched t USING (execution_id)
    WHERE b.event_type = 'answer'
        AND (t.examined_at IS NOT NULL OR (SELECT assesses_all FROM projects WHERE pk = %(project)s))
), """

_STORE_OTHERS = _STORE.format(answers="")
_STORE_ANSWERS = _STORE.format(answers=_NOTED_ANSWERS)

_ANSWER = '"event_type":"answer"'
"""As it is written in rows. A payload may have it, too, which costs a look."""

_WATCHED = """
FROM events
WHERE execution_pk IN (SELECT jsonb_array_elements_text(%(executions)s::jsonb)::bigint)
    AND event_type = ANY (%(types)s::text[])
"""

_COUNT_FOR_DETECTORS = f"SELECT execution_pk, count(*) {_WATCHED} GROUP BY execution_pk"

_FOR_DETECTORS = f"""
SELECT execution_pk, event_type, event_id, sequence, timestamp, evaluator_id, metric_type, score, passed,
    higher_is_better, scale_min, scale_max, left(payload ->> 'reason', 500),
    CASE WHEN event_type <> 'eval_score' THEN payload::text END
{_WATCHED}
"""


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of a batch."""

    accepted: int
    is_late: bool
    """An execution that has been examined before is due again."""


@dataclass(slots=True)
class Observed:
    """What detectors read of one execution."""

    scores: list[EvalScore] = field(default_factory=list)
    validators: list[ValidatorResult] = field(default_factory=list)
    interventions: list[HumanIntervention] = field(default_factory=list)


def store(
    connection: Connection, project_pk: int, rows: str, *, settle_s: float, debounce_s: float
) -> Stored:
    """Store a batch and mark its executions due; events that are there already are left as they are.

    Answers of executions that have been examined, or of a project that assesses all, are noted to be looked at.

    Args:
        connection: an open transaction.
        project_pk: whose events they are.
        rows: a JSON array of `schemas.events.EventRow`.
        settle_s: how long an open execution must be quiet before it is due.
        debounce_s: how soon an examined execution is due again.
    """
    parameters = {
        "project": project_pk,
        "rows": rows,
        "types": _DETECTED_TYPES,
        "settle": settle_s,
        "debounce": debounce_s,
    }
    statement = _STORE_ANSWERS if _ANSWER in rows else _STORE_OTHERS
    accepted, is_late = connection.exec_driver_sql(statement, parameters).one()
    return Stored(accepted, is_late)


def count_for_detectors(connection: Connection, execution_pks: Collection[int]) -> dict[int, int]:
    """Count, by execution, the events that `for_detectors` would read."""
    if not execution_pks:
        return {}
    parameters = {"executions": json_text(list(execution_pks)), "types": _DETECTED_TYPES}
    rows = connection.exec_driver_sql(_COUNT_FOR_DETECTORS, parameters)
    return {pk: count for pk, count in rows}  # noqa: C416 - mypy knows no pairs in rows


def for_detectors(connection: Connection, execution_pks: Collection[int]) -> dict[int, Observed]:
    """Read the events of some executions that detectors look at."""
    parameters = {"executions": json_text(list(execution_pks)), "types": _DETECTED_TYPES}
    observed = {pk: Observed() for pk in execution_pks}
    for row in connection.exec_driver_sql(_FOR_DETECTORS, parameters):
        execution_pk, event_type, *values = row
        _observe(observed[execution_pk], execution_pk, event_type, values)
    return observed


def _observe(observed: Observed, execution_pk: int, event_type: str, values: list[Any]) -> None:
    if event_type == "eval_score":
        observed.scores.append(EvalScore(*values[:11]))
        return
    event_id, sequence, timestamp = values[:3]
    payload = None if values[11] is None else read_json(values[11])
    if event_type == "validator_result":
        observed.validators.append(
            ValidatorResult.from_payload(event_id, sequence, timestamp, payload)
        )
    else:
        observed.interventions.append(
            HumanIntervention.from_payload(
                event_id, sequence, timestamp, str(execution_pk), payload
            )
        )

"""What failing executions answered, and what the evaluator said of it: as much of it as a page shows."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime

from msgspec import Struct

from mesedi_server.store.assessments import ANSWER_ID
from mesedi_server.store.database import Connection
from mesedi_server.store.json_text import json_text
from mesedi_server.store.trends import Pair

MAX_ANSWERS = 3
"""Answers of one execution, its last ones."""
MAX_SCORES = 5
"""Scores of one execution and pair."""
TEXT_CHARS = 2_000
"""Characters of a reason."""

_LATEST = 50

# Of several events with one answer_id the last counts (wire.md 2). Evidence is the first key that is there, whatever
# it holds; an item is a string, or an object with its text under one of three names (durable-evaluations.md 4).
# A payload may have megabytes, and each look into it unpacks it whole: it is taken apart once.
_ANSWERS = f"""
SELECT e.execution_pk, given.answer_id, left(given.question, %(chars)s), left(given.answer, %(chars)s),
    length(given.answer), e.received_at,
    CASE WHEN jsonb_typeof(listed) = 'array' THEN jsonb_array_length(listed) ELSE 0 END,
    ARRAY(SELECT coalesce(left(CASE jsonb_typeof(item) WHEN 'string' THEN item #>> '{{}}'
            WHEN 'object' THEN coalesce(item -> 'text', item -> 'content', item -> 'body') #>> '{{}}' END,
            %(chars)s), '')
        FROM jsonb_array_elements(CASE WHEN jsonb_typeof(listed) = 'array' THEN listed ELSE '[]' END)
            WITH ORDINALITY AS items (item, place)
        WHERE place <= %(passages)s ORDER BY place)
FROM jsonb_array_elements_text(%(executions)s::jsonb) AS wanted (pk)
CROSS JOIN LATERAL (
    SELECT * FROM (
        SELECT DISTINCT ON ({ANSWER_ID}) *
        FROM (SELECT execution_pk, payload, sequence, timestamp, event_id, received_at FROM events
            WHERE execution_pk = wanted.pk::bigint AND event_type = 'answer'
            ORDER BY sequence DESC, timestamp DESC, event_id DESC LIMIT {_LATEST}) AS latest
        ORDER BY {ANSWER_ID}, sequence DESC, timestamp DESC, event_id DESC) AS last
    ORDER BY sequence DESC, timestamp DESC, event_id DESC LIMIT {MAX_ANSWERS}) AS e
CROSS JOIN LATERAL jsonb_to_record(CASE jsonb_typeof(e.payload) WHEN 'object' THEN e.payload END)
    AS given (answer_id text, question text, answer text, context jsonb)
CROSS JOIN LATERAL (SELECT CASE jsonb_typeof(context) WHEN 'array' THEN context WHEN 'object' THEN
    coalesce(context -> 'excerpts', context -> 'passages', context -> 'documents', context -> 'sources',
        context -> 'context') END OFFSET 0) AS evidence (listed)
ORDER BY e.execution_pk, e.sequence, e.timestamp, e.event_id
"""

_SCORES = f"""
SELECT e.*
FROM jsonb_array_elements_text(%(executions)s::jsonb) AS wanted (pk)
CROSS JOIN LATERAL (
    SELECT execution_pk, score, passed, left(payload ->> 'reason', {TEXT_CHARS}), payload ->> 'answer_id'
    FROM events
    WHERE execution_pk = wanted.pk::bigint AND event_type = 'eval_score'
        AND evaluator_id = %(evaluator)s AND metric_type = %(metric)s
    ORDER BY passed IS FALSE DESC, CASE WHEN higher_is_better THEN score ELSE -score END NULLS LAST, sequence,
        timestamp, event_id LIMIT {MAX_SCORES}) AS e
"""


class Extent(Struct, frozen=True):
    """How much of an answer is read."""

    chars: int
    """Characters of a question, an answer or a passage."""
    passages: int
    """Passages of an answer, its first ones."""
    findings: int
    """Quantities, citations and claims that an assessment found, the first ones of each."""


SHORT = Extent(2_000, 8, 200)
"""What a group's page shows of each of several answers."""
LONG = Extent(20_000, 50, 1_000)
"""What an execution's own page shows."""


class Answer(Struct, frozen=True):
    """An answer that an execution gave, and the passages that it had for it, as much of them as was asked for."""

    answer_id: str | None
    question: str | None
    answer: str | None
    answer_chars: int | None
    """Characters of the whole answer."""
    received_at: datetime
    passage_count: int
    passages: list[str]
    """The first ones."""


class Score(Struct, frozen=True):
    """What an evaluator said; `reason` cut at TEXT_CHARS."""

    score: float | None
    passed: bool | None
    reason: str | None
    answer_id: str | None


def of_executions(
    connection: Connection, execution_pks: Collection[int], extent: Extent
) -> dict[int, list[Answer]]:
    """Read the last answers of some executions, in the order in which they were given."""
    parameters = {
        "executions": json_text(list(execution_pks)),
        "chars": extent.chars,
        "passages": extent.passages,
    }
    found: dict[int, list[Answer]] = defaultdict(list)
    for execution_pk, *values in connection.exec_driver_sql(_ANSWERS, parameters):
        found[execution_pk].append(Answer(*values))
    return found


def scores_of(
    connection: Connection, execution_pks: Collection[int], pair: Pair
) -> dict[int, list[Score]]:
    """Read the scores of a pair in some executions: failed verdicts first, then the worst, MAX_SCORES of each."""
    evaluator, metric = pair
    parameters = {
        "executions": json_text(list(execution_pks)),
        "evaluator": evaluator,
        "metric": metric,
    }
    found: dict[int, list[Score]] = defaultdict(list)
    for execution_pk, *values in connection.exec_driver_sql(_SCORES, parameters):
        found[execution_pk].append(Score(*values))
    return found

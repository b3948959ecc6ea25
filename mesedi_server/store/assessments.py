"""What evaluators said of answers, and the sums of it over a failure group.

One row an execution, answer and evaluator: a changed answer, or another revision of the evaluator, replaces it.
"""

from collections import defaultdict
from collections.abc import Collection
from typing import Any

from msgspec import Struct

from mesedi_server.store.database import Connection
from mesedi_server.store.json_text import json_text, read_json

GROUNDING = "grounding"
FAITHFULNESS = "faithfulness"

COUNTED_EXECUTIONS = 1_000
"""Failing executions that a group's sums are over, its latest ones."""
MAX_ID_CHARS = 256
"""Characters of an answer's id that count; an id that is longer is cut."""
ANSWER_ID = f"left(coalesce(payload ->> 'answer_id', ''), {MAX_ID_CHARS})"
"""SQL of the id by which an `answer` event's answer is told from the execution's others; without one it is empty."""


class AssessmentRow(Struct, frozen=True, kw_only=True):
    """What one evaluator said of one answer."""

    project_pk: int
    execution_pk: int
    answer_id: str
    """The client's id, its first MAX_ID_CHARS; empty: the answer has none."""
    answer_digest: bytes
    """SHA-256 of the canonical JSON of [question, answer, context]."""
    evaluator: str
    """`grounding` or `faithfulness`."""
    revision: str
    """Of the evaluator; that of faithfulness also tells which judge it was."""
    outcome: str
    """met, violated, needs_review, not_applicable, missing_evidence, invalid, unknown_outcome or budget_blocked."""
    reason: str | None = None
    """Why there is no judgment."""
    content: dict[str, Any] | None = None
    """The findings, as the evaluator writes them; of a great many, the first ones."""
    quantities: int = 0
    """Quantities of the answer, whatever became of them; this and the numbers below count all, not only those of
    `content`."""
    unmatched: int = 0
    ambiguous: int = 0
    citations: int = 0
    unresolved: int = 0
    passages: int | None = None
    """Passages that came with the answer; None: nobody could read them, or an older server assessed it."""


class GroupCounts(Struct, frozen=True, kw_only=True):
    """What grounding found in the failing answers of a group's latest executions; an answer may be in several.

    Of an execution with several answers those fail that the group's evaluator failed by name; without such, all that it
    names; without such, all. A dataset has the same ones.
    """

    executions: int
    """Failing executions that were looked at."""
    without_answer: int
    """Of these, executions without any recorded answer."""
    waiting: int
    """Of these, executions with an answer, none of which has been assessed yet."""
    answers: int
    """Failing answers of these executions that have been assessed: what the numbers below are of."""
    with_quantities: int
    with_citations: int
    unmatched: int
    """Answers with an unmatched quantity."""
    unresolved: int
    """Answers with an unresolved citation."""
    untraced: int
    """Answers with passages and two exact quantities or more of which none was traced, nor any citation resolved."""
    ambiguous: int
    """Answers with an ambiguous quantity."""
    without_passages: int
    """Answers whose list of passages is empty."""
    violated_without_passages: int
    met_without_passages: int
    missing_evidence: int
    """Answers whose outcome is `missing_evidence`; so on for the outcomes below."""
    met: int
    violated: int
    needs_review: int
    not_applicable: int
    invalid: int


FINDINGS = {
    "unmatched": "unmatched > 0",
    "without_passages": "passages = 0",
    "untraced": "unmatched > 1 AND unmatched + ambiguous = quantities AND unresolved = citations"
    " AND passages IS DISTINCT FROM 0",
    "unresolved": "unresolved > 0",
    "ambiguous": "ambiguous > 0",
    "missing_evidence": "outcome = 'missing_evidence'",
    "met": "outcome = 'met'",
    "not_applicable": "outcome = 'not_applicable'",
    "invalid": "outcome = 'invalid'",
}
"""Findings by which a group's answers can be told apart, as `GroupCounts` names them: conditions on `assessments`."""

# An array, so that each is looked up in the index, however much is stored.
_WANTED = "ANY (ARRAY(SELECT jsonb_array_elements_text(%(executions)s::jsonb)::bigint))"

_PUT = """
INSERT INTO assessments AS a (project_pk, execution_pk, answer_id, answer_digest, evaluator, revision, outcome, reason,
    content, quantities, unmatched, ambiguous, citations, unresolved, passages)
SELECT project_pk, execution_pk, answer_id, decode(answer_digest, 'base64'), evaluator, revision, outcome, reason,
    content, quantities, unmatched, ambiguous, citations, unresolved, passages
FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (
    project_pk int, execution_pk bigint, answer_id text, answer_digest text, evaluator text, revision text,
    outcome text, reason text, content jsonb, quantities int, unmatched int, ambiguous int, citations int,
    unresolved int, passages int)
ORDER BY execution_pk, answer_id, evaluator
ON CONFLICT (execution_pk, answer_id, evaluator) DO UPDATE SET
    answer_digest = excluded.answer_digest, revision = excluded.revision, outcome = excluded.outcome,
    reason = excluded.reason, content = excluded.content, quantities = excluded.quantities,
    unmatched = excluded.unmatched, ambiguous = excluded.ambiguous, citations = excluded.citations,
    unresolved = excluded.unresolved, passages = excluded.passages, assessed_at = now()
"""

_OF_EXECUTIONS = f"""
SELECT project_pk, execution_pk, answer_id, answer_digest, evaluator, revision, outcome, reason, content::text,
    quantities, unmatched, ambiguous, citations, unresolved, passages
FROM assessments WHERE execution_pk = {_WANTED} ORDER BY execution_pk, answer_id, evaluator
"""

_DIGESTS = f"""
SELECT execution_pk, answer_id, revision, answer_digest
FROM assessments WHERE execution_pk = {_WANTED} AND evaluator = %(evaluator)s
"""

# Verdicts of an evaluator that names the answers are read where an execution has several.
_FAILING = f"""
WITH latest AS MATERIALIZED (
    SELECT execution_pk FROM occurrences WHERE group_pk = %(group)s
    ORDER BY occurred_at DESC, execution_pk DESC LIMIT %(limit)s
), assessed AS MATERIALIZED (
    SELECT l.execution_pk, a.*, count(*) OVER (PARTITION BY l.execution_pk) AS siblings
    FROM latest l CROSS JOIN LATERAL (
        SELECT answer_id, outcome, quantities, unmatched, ambiguous, citations, unresolved, passages FROM assessments
        WHERE execution_pk = l.execution_pk AND evaluator = '{GROUNDING}' OFFSET 0) a
), judged AS MATERIALIZED (
    SELECT a.execution_pk, a.answer_id, bool_or(e.passed IS FALSE) AS has_failed
    FROM assessed a JOIN failure_groups g ON g.pk = %(group)s
    JOIN events e ON e.execution_pk = a.execution_pk AND e.event_type = 'eval_score'
        AND e.evaluator_id = g.evaluator_id AND e.metric_type = g.metric_type
        AND left(e.payload ->> 'answer_id', {MAX_ID_CHARS}) = a.answer_id
    WHERE a.siblings > 1 GROUP BY a.execution_pk, a.answer_id
), failing AS MATERIALIZED (
    -- The failed ones; if none has failed, those that are named; if none is named, all.
    SELECT * FROM (
        SELECT a.*, has_failed, bool_or(has_failed) OVER (PARTITION BY execution_pk) AS have_failed
        FROM assessed a LEFT JOIN judged USING (execution_pk, answer_id)) AS weighed
    WHERE has_failed IS NOT DISTINCT FROM have_failed
)"""

_COUNTS = f"""{_FAILING}, bare AS (
    SELECT EXISTS (SELECT FROM events e WHERE e.execution_pk = l.execution_pk AND e.event_type = 'answer') AS has_answer
    FROM latest l WHERE NOT EXISTS (SELECT FROM assessed a WHERE a.execution_pk = l.execution_pk)
)
SELECT (SELECT count(*) FROM latest) AS executions,
    (SELECT count(*) FROM bare WHERE NOT has_answer) AS without_answer,
    (SELECT count(*) FROM bare WHERE has_answer) AS waiting,
    count(*) AS answers,
    count(*) FILTER (WHERE quantities > 0) AS with_quantities,
    count(*) FILTER (WHERE citations > 0) AS with_citations,
    count(*) FILTER (WHERE outcome = 'violated') AS violated,
    count(*) FILTER (WHERE outcome = 'needs_review') AS needs_review,
    count(*) FILTER (WHERE outcome = 'violated' AND passages = 0) AS violated_without_passages,
    count(*) FILTER (WHERE outcome = 'met' AND passages = 0) AS met_without_passages,
    {", ".join(f"count(*) FILTER (WHERE {condition}) AS {name}" for name, condition in FINDINGS.items())}
FROM failing
"""


def put(connection: Connection, rows: list[AssessmentRow]) -> None:
    """Keep what evaluators said, each in place of what the same one said of the same answer before."""
    if rows:
        connection.exec_driver_sql(_PUT, {"rows": json_text(rows)})


def of_executions(
    connection: Connection, execution_pks: Collection[int]
) -> dict[int, list[AssessmentRow]]:
    """Read what all evaluators said of the answers of some executions, by answer id and evaluator."""
    parameters = {"executions": json_text(list(execution_pks))}
    found: dict[int, list[AssessmentRow]] = defaultdict(list)
    names = AssessmentRow.__struct_fields__
    for values in connection.exec_driver_sql(_OF_EXECUTIONS, parameters):
        row = dict(zip(names, values, strict=True))
        content = row["content"]
        row["answer_digest"] = bytes(row["answer_digest"])
        row["content"] = None if content is None else read_json(content)
        found[row["execution_pk"]].append(AssessmentRow(**row))
    return found


def digests(
    connection: Connection, execution_pks: Collection[int], evaluator: str
) -> dict[tuple[int, str], tuple[str, bytes]]:
    """Read by which revision, and in which wording, an evaluator assessed answers: by execution and answer id."""
    parameters = {"executions": json_text(list(execution_pks)), "evaluator": evaluator}
    rows = connection.exec_driver_sql(_DIGESTS, parameters)
    return {(pk, answer_id): (revision, bytes(seen)) for pk, answer_id, revision, seen in rows}


def counts_of_group(
    connection: Connection, group_pk: int, limit: int = COUNTED_EXECUTIONS
) -> GroupCounts:
    """Sum up what grounding found in the answers of a group's `limit` latest failing executions."""
    parameters = {"group": group_pk, "limit": limit}
    row = connection.exec_driver_sql(_COUNTS, parameters).mappings().one()
    return GroupCounts(**row)


def executions_with(
    connection: Connection, group_pk: int, finding: str, limit: int = COUNTED_EXECUTIONS
) -> list[int]:
    """List those of a group's `limit` latest executions that have a failing answer with a finding, one of FINDINGS."""
    statement = f"{_FAILING} SELECT DISTINCT execution_pk FROM failing WHERE {FINDINGS[finding]}"
    parameters = {"group": group_pk, "limit": limit}
    return list(connection.exec_driver_sql(statement, parameters).scalars())

"""What evaluators found in the answers of some executions: as much of it as a page shows."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from msgspec import Struct

from mesedi_server.store.answers import TEXT_CHARS, Answer, Extent
from mesedi_server.store.assessments import MAX_ID_CHARS
from mesedi_server.store.database import Connection
from mesedi_server.store.json_text import json_text, read_json

_OF_EXECUTIONS = f"""
SELECT wanted.pk::bigint,
    EXISTS (SELECT FROM assessment_work w WHERE w.execution_pk = wanted.pk::bigint),
    a.answer_id, a.evaluator, a.outcome, left(a.reason, {TEXT_CHARS}), a.assessed_at,
    a.quantities, a.unmatched, a.ambiguous, a.citations, a.unresolved,
    jsonb_build_object(
        'quantities', jsonb_path_query_array(found.quantities, '$[0 to $last]', bounds),
        'citations', jsonb_path_query_array(found.citations, '$[0 to $last]', bounds),
        'claims', jsonb_path_query_array(verdict, '$.claims[0 to $last]', bounds),
        'verdict', verdict #- '{{claims}}',
        'supported', jsonb_array_length(jsonb_path_query_array(verdict, '$.claims[*] ? (@.status == "supported")')),
        'all_claims', jsonb_array_length(jsonb_path_query_array(verdict, '$.claims[*]')))::text
FROM jsonb_array_elements_text(%(executions)s::jsonb) AS wanted (pk)
CROSS JOIN (SELECT jsonb_build_object('last', %(findings)s::int - 1) AS bounds) AS given
LEFT JOIN assessments a ON a.execution_pk = wanted.pk::bigint
-- Each look into a long content unpacks it whole: it is taken apart once.
LEFT JOIN LATERAL jsonb_to_record(a.content) AS found (quantities jsonb, citations jsonb, verdict jsonb) ON true
ORDER BY 1, a.answer_id, a.evaluator
"""


class Findings(Struct, frozen=True):
    """What an evaluator found in an answer: the first of each, as its `content()` writes them."""

    quantities: list[dict[str, Any]] | None = None
    citations: list[dict[str, Any]] | None = None
    claims: list[dict[str, Any]] | None = None
    verdict: dict[str, Any] | None = None
    """A judge's verdict without its claims."""
    supported: int | None = None
    """Of all claims, those that have support."""
    all_claims: int | None = None


class Assessed(Struct, frozen=True):
    """What one evaluator said of one answer."""

    findings: Findings
    outcome: str
    reason: str | None
    assessed_at: datetime
    quantities: int
    """This and the numbers below count all, not only those that were read."""
    unmatched: int
    ambiguous: int
    citations: int
    unresolved: int


@dataclass(slots=True)
class OfExecution:
    """What is known of an execution's answers."""

    is_waiting: bool = False
    """Its answers will be looked at (again)."""
    by_answer: dict[str, dict[str, Assessed]] = field(default_factory=lambda: defaultdict(dict))
    """By answer id and evaluator."""

    def of(self, answer: Answer) -> dict[str, Assessed]:
        """Return what each evaluator said of an answer as it stands; not of what it was before it changed."""
        said = self.by_answer.get((answer.answer_id or "")[:MAX_ID_CHARS], {})
        return {
            evaluator: assessed
            for evaluator, assessed in said.items()
            if not (self.is_waiting and assessed.assessed_at < answer.received_at)
        }


def of_executions(
    connection: Connection, execution_pks: Collection[int], extent: Extent
) -> dict[int, OfExecution]:
    """Read what evaluators said of the answers of some executions."""
    parameters = {"executions": json_text(list(execution_pks)), "findings": extent.findings}
    found: dict[int, OfExecution] = defaultdict(OfExecution)
    for pk, is_waiting, answer_id, evaluator, *values, findings in connection.exec_driver_sql(
        _OF_EXECUTIONS, parameters
    ):
        found[pk].is_waiting = is_waiting
        if answer_id is not None:
            said = Assessed(Findings(**read_json(findings)), *values)
            found[pk].by_answer[answer_id][evaluator] = said
    return found

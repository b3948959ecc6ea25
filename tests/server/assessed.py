"""Assessments of answers that tests have sent."""

from collections.abc import Mapping

from evaluators import evidence, grounding
from evaluators.evidence import MissingEvidence
from mesedi_server.store import assessments
from mesedi_server.store.assessments import AssessmentRow
from mesedi_server.store.database import Database

_ANSWERS = """
SELECT DISTINCT ON (execution_pk, payload ->> 'answer_id') project_pk, execution_pk, payload FROM events
WHERE event_type = 'answer' ORDER BY execution_pk, payload ->> 'answer_id', sequence DESC
"""


def assess_all(database: Database) -> None:
    """Ground every answer of a database, as the evaluator does it anywhere."""
    with database.transaction() as connection:
        found = connection.exec_driver_sql(_ANSWERS).all()
        assessments.put(connection, [make_row(*one) for one in found])


def make_row(project_pk: int, execution_pk: int, payload: Mapping, **fields) -> AssessmentRow:
    """What grounding finds in an `answer` event."""
    bundle = evidence.read(payload.get("context"), payload.get("question"), "turn:0")
    plain = {
        "project_pk": project_pk,
        "execution_pk": execution_pk,
        "answer_id": payload["answer_id"],
        "answer_digest": b"",
        "evaluator": "grounding",
        "revision": "tests",
    }
    return AssessmentRow(**(plain | _found(payload["answer"], bundle) | fields))


def _found(answer: str, bundle) -> dict:
    if isinstance(bundle, MissingEvidence):
        return {"outcome": "missing_evidence", "reason": bundle.reason}
    found = grounding.assess(answer, bundle)
    statuses = [finding.status for finding in found.quantities]
    return {
        "outcome": found.outcome,
        "content": found.content(),
        "quantities": len(statuses),
        "unmatched": statuses.count("unmatched"),
        "ambiguous": statuses.count("ambiguous"),
        "citations": len(found.citations),
        "unresolved": sum(finding.source_id is None for finding in found.citations),
    }

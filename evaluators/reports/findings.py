"""The findings of a result: their marks in the texts, and what is wrong with them in words."""

from collections.abc import Iterator

from evaluators.marks import Marks
from evaluators.reports import judgments
from evaluators.summary import Json

_BAD = ("unmatched", "ambiguous")


def marks(number: int, data: Json, result: Json) -> Marks:
    """Mark what a result says of a case, in its answer and in its sources."""
    texts = {passage["source_id"]: passage["text"] for passage in data["passages"] or ()}
    texts[data["question_source_id"]] = data["question"] or ""
    made = Marks(f"c{number}", data["answer"], texts)
    assessment = result.get("assessment") or {}
    made.add_quantities(assessment.get("quantities", ()))
    made.add_citations(assessment.get("citations", ()))
    made.add_claims(judgments.claims(result))
    made.add_quotes(judgments.quotes(result))
    return made


def complaints(result: Json) -> Iterator[str]:
    """Yield a line for every finding that keeps an answer from being met."""
    yield from judgments.complaints(result)
    assessment = result.get("assessment") or {}
    for quantity in assessment.get("quantities", ()):
        if quantity["status"] in _BAD:
            yield f"{quantity['status']} quantity: {quantity['quote']}"
    for citation in assessment.get("citations", ()):
        if citation["source_id"] is None:
            yield f"unresolved citation: {citation['index']} in {citation['quote']}"

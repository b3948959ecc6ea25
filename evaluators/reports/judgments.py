"""What a judge or a registered evaluator said, as reports show it."""

from collections.abc import Iterator

from evaluators.summary import Json

_BAD_CLAIMS = ("unsupported", "contradicted")


def claims(result: Json) -> list[Json]:
    """Return the claims that a judge found in the answer."""
    found: list[Json] = _faithfulness(result).get("claims", [])
    return found


def quotes(result: Json) -> list[Json]:
    """Return the quotes that a rubric's verdict or a registered evaluator leans on."""
    evidence: list[Json] = _reasoned(result).get("evidence", [])
    return evidence


def explanation(result: Json) -> str | None:
    """Return the judge's or the evaluator's own words on an answer."""
    return _faithfulness(result).get("reasoning") or _reasoned(result).get("rationale")


def complaints(result: Json) -> Iterator[str]:
    """Yield a line for everything in a faithfulness verdict that speaks against the answer."""
    verdict = _faithfulness(result)
    if not verdict:
        return
    if verdict["dangerous"]:
        yield f"dangerous: {verdict['danger_reason']}"
    for claim in verdict["claims"]:
        if claim["status"] in _BAD_CLAIMS:
            yield f"{claim['status']} claim: {claim['text']}"
    least = result["assessment"]["min_correctness"]
    if verdict["correctness"] < least:
        yield f"correctness {verdict['correctness']} of 10, at least {least} is wanted"
    if verdict["abstained"] and not verdict["abstention_appropriate"]:
        yield "abstained, though the sources allow an answer"
    elif not verdict["answers_question"] and not verdict["abstained"]:
        yield "does not answer the question"


def _faithfulness(result: Json) -> Json:
    assessment = result.get("assessment") or {}
    verdict: Json = (
        assessment.get("verdict", {}) if assessment.get("kind") == "faithfulness" else {}
    )
    return verdict


def _reasoned(result: Json) -> Json:
    assessment = result.get("assessment") or {}
    found: Json = result.get("verdict") or (
        assessment if assessment.get("kind") == "custom" else {}
    )
    return found

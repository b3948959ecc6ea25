"""Vectara's hallucination evaluation (HHEM), in every shape it is handed over in.

Source: evaluator-outputs.md, section 3. Always the consistency: never a retrieval score, never
the confidence in whichever label won.
"""

from collections.abc import Iterable, Iterator, Sequence

from mesedi import _client
from mesedi._hhem_shapes import Consistency, read_consistencies
from mesedi._rows import Row, RowScore, report_nothing, send_rows

_METRIC = "factual_consistency"
_THRESHOLD = 0.5  # the vendor's starting point; exactly 0.5 counts as consistent


@_client.emitter
def emit_hhem(
    result: object,
    *,
    threshold: float | None = _THRESHOLD,
    pairs: Sequence[tuple[str, str]] = (),
    model: str | None = None,
    execution_ids: Sequence[str] | None = None,
    answers: bool = True,
    run_id: str | None = None,
) -> int:
    """Send how consistent each answer is with its sources, as metric `factual_consistency`.

    Takes numbers, arrays and tensors, the labels of a text-classification pipeline, Vectara's
    responses (as JSON, dict or SDK object), LangChain's and LlamaIndex' metadata. Each score goes
    to its entry of `execution_ids`, else the current execution, else one of its own.
    Rows beyond the first 10,000 are dropped, counted once.

    Args:
        result: what the model, the service or the library answered.
        threshold: from which on an answer counts as consistent; None gives no verdict.
        pairs: the `(source, answer)` pairs that were judged, in the scores' order.
        model: which model judged; kept in the events' metadata.
        execution_ids: the executions of the scores, in their order.
        answers: False keeps questions, answers and sources here.
        run_id: your name of this run: sending the result twice then stores it once.

    Returns:
        The number of scores.
    """
    rows = hhem_rows(result, threshold=threshold, pairs=pairs, model=model, answers=answers)
    count = send_rows("hhem", rows, execution_ids=execution_ids, run_id=run_id)
    return count or report_nothing("hhem", result)


def hhem_rows(
    result: object,
    *,
    threshold: float | None = _THRESHOLD,
    pairs: Sequence[tuple[str, str]] = (),
    model: str | None = None,
    answers: bool = True,
) -> Iterator[Row]:
    """Read one row a judged answer."""
    for place, found in enumerate(_with_pairs(read_consistencies(result), pairs)):
        yield _row(place, found, threshold, model, answers)


def _with_pairs(
    found: Iterable[Consistency], pairs: Sequence[tuple[str, str]]
) -> Iterable[Consistency]:
    for place, each in enumerate(found):
        if place < len(pairs):
            source, answer = pairs[place]
            yield each._replace(answer=answer, contexts=[source])
        else:
            yield each


def _row(
    place: int,
    found: Consistency,
    threshold: float | None,
    model: str | None,
    answers: bool,  # noqa: FBT001 - one of this module's own calls
) -> Row:
    verdict = None if found.score is None or threshold is None else found.score >= threshold
    score = RowScore(
        _METRIC,
        found.score,
        verdict,
        threshold,
        reason=found.reason,
        status=found.status if found.score is None else None,
        metadata=None if model is None else {"model": model},
    )
    key = f"{place}:{found.question}:{found.answer}"
    if not answers:
        return Row([score], key=key)
    return Row([score], found.question, found.answer, found.contexts, key)

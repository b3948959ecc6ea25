"""The emitters: scores, answers and other observations, captured on the caller's thread."""

import time
from collections.abc import Mapping, Sequence
from math import isfinite

from mesedi import _client
from mesedi._executions import current_execution
from mesedi._pieces import Observation, Score
from mesedi._plain import Json, plain, text
from mesedi._readings import Reading, number, read_score, read_verdict

_VERDICT_WORDS = {"pass", "passed", "fail", "failed"}
_NOTHING = (None, None, None, None)
_SEVERITIES = {"warning", "error", "critical"}


@_client.emitter
def emit_eval_score(  # noqa: PLR0917 - the reference takes them by position
    evaluator: str | None = None,
    metric: str | None = None,
    score: object = None,
    passed: object = None,
    threshold: float | None = None,
    higher_is_better: bool = True,  # noqa: FBT001, FBT002 - the reference takes it by position
    reason: str | None = None,
    confidence: float | None = None,
    *,
    execution_id: str | None = None,
    answer_id: str | None = None,
    scale: Sequence[float] | None = None,
    status: str | None = None,
    metadata: Mapping[str, object] | None = None,
    event_id: str | None = None,
    evaluator_id: str | None = None,
    metric_type: str | None = None,
) -> None:
    """Send what one evaluator says of one output.

    Inside an execution the score belongs to it; `execution_id` attaches it to an earlier one,
    also of another process; without either it makes an execution of its own.

    Args:
        evaluator: who judged, such as `ragas`.
        metric: what was judged, such as `faithfulness`.
        score: a number, or what holds one (numpy, torch, a Ragas result, "0.9"); a word such
            as "pass" counts as 1 or 0; None, NaN and other labels are *unmeasured*, never 0.
        passed: the evaluator's own verdict; left out or None, there is none.
        threshold: what the evaluator compared with; evidence for the reader.
        higher_is_better: False for metrics such as a hallucination rate.
        reason: why, in the evaluator's words.
        confidence: how sure the evaluator is.
        execution_id: the execution to attach it to.
        answer_id: which answer was judged (see `record_answer`).
        scale: `(min, max)` of scores that are not between 0 and 1.
        status: why there is no score: `error` or `not_scored`.
        metadata: anything else worth keeping; copied.
        event_id: your own id of this score: the server stores each id once.
        evaluator_id: another name of `evaluator`.
        metric_type: another name of `metric`.
    """
    client = _client.for_emitting()
    if client is None:
        return
    evaluator = evaluator if evaluator is not None else evaluator_id
    metric = metric if metric is not None else metric_type
    if evaluator is None or not text(evaluator).strip():
        _client.count_lost("no evaluator")
        return
    if type(score) is not float or not isfinite(score):
        reading = read_score(score)
        score, passed = reading.score, _verdict_of(reading, passed, higher_is_better)
        metadata = _with_label(metadata, reading)
    if passed is not None and type(passed) is not bool:
        passed = read_verdict(passed)
    extra = None
    if (answer_id, scale, status, metadata) != _NOTHING:
        extra = _extra(answer_id, scale, status, metadata)
    run_id, sequence = _place(execution_id)
    client.put(
        Score(
            client.ids.take(),
            run_id,
            sequence,
            time.time(),
            text(evaluator),
            "" if metric is None else text(metric),
            score,
            passed,
            threshold if threshold is None else number(threshold),
            higher_is_better is True or bool(higher_is_better),
            reason if reason is None else text(reason),
            confidence if confidence is None else number(confidence),
            extra,
            event_id,
        )
    )


@_client.emitter
def emit_event(
    event_type: str,
    payload: Mapping[str, object] | None = None,
    *,
    execution_id: str | None = None,
    event_id: str | None = None,
) -> None:
    """Send an event of any type; `payload` is copied, what JSON lacks is named by its type."""
    client = _client.for_emitting()
    if client is None:
        return
    content, size = plain({} if payload is None else payload)
    run_id, sequence = _place(execution_id)
    number = client.ids.take()
    kind = text(event_type)
    now = time.time()
    client.put(Observation(number, run_id, sequence, now, kind, content, size, event_id))


@_client.emitter
def record_answer(
    question: str,
    answer: str,
    contexts: Sequence[object] | Mapping[str, object] | None = None,
    *,
    answer_id: str | None = None,
    execution_id: str | None = None,
    metadata: Mapping[str, object] | None = None,
    event_id: str | None = None,
) -> str | None:
    """Send the text that scores are about: question, answer and what was retrieved.

    Args:
        question: what was asked.
        answer: what your pipeline said.
        contexts: the passages in order, as strings or objects with a text; an empty list
            says that nothing was found, None that nothing is known. A mapping goes as it is.
        answer_id: your own id; default: a new one.
        execution_id: the execution to attach it to.
        metadata: anything else worth keeping; copied.
        event_id: your own id of this event.

    Returns:
        The answer's id, for `emit_eval_score(..., answer_id=...)`.
    """
    client = _client.current()
    if answer_id is None and client is not None:
        answer_id = client.ids.name("ans", client.ids.take())
    payload: dict[str, object] = {
        "answer_id": answer_id,
        "question": question,
        "answer": answer,
        "context": _context(contexts),
    }
    if metadata is not None:
        payload["metadata"] = metadata
    emit_event("answer", payload, execution_id=execution_id, event_id=event_id)
    return answer_id


@_client.emitter
def validator_result(
    name: str,
    passed: object,
    message: str = "",
    severity: str = "error",
    category: str = "",
    *,
    execution_id: str | None = None,
) -> None:
    """Send what one yes-or-no check of your own code found.

    `severity` is `warning`, `error` or `critical`; `category` tells failures of one check apart.
    """
    payload: dict[str, object] = {
        "name": name,
        "passed": read_verdict(passed),
        "severity": severity if severity in _SEVERITIES else "error",
    }
    payload.update({"message": message} if message else {})
    payload.update({"category": category} if category else {})
    emit_event("validator_result", payload, execution_id=execution_id)


@_client.emitter
def checkpoint(name: str, /, **metadata: object) -> None:
    """Mark a place that the execution has come to."""
    emit_event("checkpoint", {"name": name, "metadata": metadata})


def _place(execution_id: str | None) -> tuple[str, int | None]:
    """Answer the execution of an event emitted here ("": it gets its own), and its place."""
    if execution_id is not None:
        return text(execution_id), None
    run = current_execution()
    return ("", 1) if run is None else (run.id, run.next_sequence())


def _verdict_of(reading: Reading, passed: object, higher_is_better: object) -> object:
    """Take a word for the verdict if none is given; where lower is better, "yes" is no pass."""
    if passed is not None or reading.verdict is None:
        return passed
    spoken = (reading.label or "").lower() in _VERDICT_WORDS
    return reading.verdict if spoken or higher_is_better else None


def _with_label(
    metadata: Mapping[str, object] | None, reading: Reading
) -> Mapping[str, object] | None:
    return metadata if reading.label is None else {**(metadata or {}), "label": reading.label}


def _extra(
    answer_id: str | None,
    scale: Sequence[float] | None,
    status: str | None,
    metadata: Mapping[str, object] | None,
) -> dict[str, Json]:
    extra: dict[str, Json] = {}
    if answer_id is not None:
        extra["answer_id"] = text(answer_id)
    if scale is not None:
        extra["scale"] = plain(list(scale))[0]
    if status is not None:
        extra["status"] = text(status)
    if metadata is not None:
        extra["metadata"] = plain(metadata)[0]
    return extra


def _context(contexts: Sequence[object] | Mapping[str, object] | None) -> object:
    if contexts is None or isinstance(contexts, Mapping):
        return contexts
    passages = [contexts] if isinstance(contexts, str) else list(contexts)
    return {"excerpts": [_passage(passage) for passage in passages]}


def _passage(passage: object) -> object:
    """Read a passage object as retrieval libraries have them; text and mappings stay."""
    for name in ("page_content", "text", "content"):
        words = getattr(passage, name, None)
        if isinstance(words, str):
            name_of = getattr(passage, "id", None)
            return {"text": words} if name_of is None else {"id": name_of, "text": words}
    return passage

"""The emitter of scores: what most calls are, so it does as little as it can on the caller's thread."""

import time
from collections.abc import Mapping, Sequence
from itertools import islice
from math import isfinite

from mesedi import _client
from mesedi._events import place_of
from mesedi._executions import current_execution, step
from mesedi._pieces import Score
from mesedi._plain import Json, plain, printed, text
from mesedi._readings import Reading, number, read_score, read_verdict
from mesedi._tally import SAMPLED_OUT

_VERDICT_WORDS = {"pass", "passed", "fail", "failed"}


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
    step()
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
    if not (answer_id is None and scale is None and status is None and metadata is None):
        extra = _extra(answer_id, scale, status, metadata)
    event_number = client.ids.take()
    if client.sampling is not None:
        unit = _unit(execution_id) or event_id or client.ids.name("evt", event_number)
        rate = client.sampling.admit(text(evaluator), unit)
        if rate is None:
            client.shipper.drop(SAMPLED_OUT)
            return
        extra = extra if rate == 1 else {**(extra or {}), "sample_rate": rate}
    run_id, sequence = place_of(execution_id)
    client.put(
        Score(
            event_number,
            run_id,
            sequence,
            time.time(),
            text(evaluator),
            metric if type(metric) is str else printed(metric),
            score,
            passed,
            threshold if threshold is None else number(threshold),
            higher_is_better is True or _is_true(higher_is_better),
            reason if reason is None or type(reason) is str else printed(reason) or None,
            confidence if confidence is None else number(confidence),
            extra,
            event_id,
        )
    )


def _unit(execution_id: str | None) -> str:
    """Answer what is sampled as one: the execution, "" where there is none."""
    if execution_id is not None:
        return text(execution_id)
    run = current_execution()
    return "" if run is None else run.id


def _verdict_of(reading: Reading, passed: object, higher_is_better: object) -> object:
    """Take a word for the verdict if none is given; where lower is better, "yes" is no pass."""
    if passed is not None or reading.verdict is None:
        return passed
    spoken = (reading.label or "").lower() in _VERDICT_WORDS
    return reading.verdict if spoken or _is_true(higher_is_better) else None


def _is_true(value: object) -> bool:
    try:
        return bool(value)
    except Exception:  # noqa: BLE001 - foreign objects raise what they like
        return True


def _with_label(
    metadata: Mapping[str, object] | None, reading: Reading
) -> Mapping[str, object] | None:
    if reading.label is None:
        return metadata
    try:
        return {**(metadata or {}), "label": reading.label}
    except Exception:  # noqa: BLE001 - foreign objects raise what they like
        return {"label": reading.label}


def _extra(
    answer_id: str | None,
    scale: Sequence[float] | None,
    status: str | None,
    metadata: Mapping[str, object] | None,
) -> dict[str, Json]:
    extra: dict[str, Json] = {}
    if answer_id is not None:
        extra["answer_id"] = printed(answer_id) or None
    ends = _ends(scale)
    if ends is not None:
        extra["scale"] = ends
    if status is not None:
        extra["status"] = printed(status) or None
    if metadata is not None:
        extra["metadata"] = plain(metadata)[0]
    return extra


def _ends(scale: Sequence[float] | None) -> list[Json] | None:
    """Read a scale; one that is none is left out, since the server refuses scores for it."""
    try:
        ends = [] if scale is None else [number(end) for end in islice(scale, 3)]
    except Exception:  # noqa: BLE001 - foreign objects raise what they like
        return None
    if len(ends) != 2 or ends[0] is None or ends[1] is None or not ends[0] < ends[1]:  # noqa: PLR2004
        return None
    return [ends[0], ends[1]]

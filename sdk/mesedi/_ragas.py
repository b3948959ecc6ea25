"""Ragas' results, recognised by their shape: Ragas itself is never imported.

Source: evaluator-outputs.md, section 1.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mesedi import _client
from mesedi._guard import say_once
from mesedi._ragas_metrics import canonical, higher_is_better, is_known, scale
from mesedi._readings import read_score
from mesedi._rows import Row, RowScore, send_rows

_TOLERANCE = 1e-6  # every context precision ends at 0.9999999999, cosines at 1.0000000000000002
_QUESTIONS = ("user_input", "question")
_ANSWERS = ("response", "answer")
_CONTEXTS = ("retrieved_contexts", "contexts")


@dataclass(frozen=True)
class Choices:
    """What the caller says about the metrics, by their own or their canonical names."""

    metrics: Sequence[str] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict)
    higher_is_better: Mapping[str, bool] = field(default_factory=dict)
    scales: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@_client.emitter
def emit_ragas(
    result: object,
    *,
    metric: str | None = None,
    metrics: Sequence[str] = (),
    thresholds: Mapping[str, float] | None = None,
    higher_is_better: Mapping[str, bool] | None = None,
    scales: Mapping[str, tuple[float, float]] | None = None,
    execution_ids: Sequence[str] | None = None,
    answers: bool = True,
    run_id: str | None = None,
) -> int:
    """Send all scores of a Ragas result, and each row's question, answer and contexts.

    Takes what `evaluate()` answers (0.1 to 0.4), a `MetricResult`, rows, records, a data frame.
    Each row goes to its entry of `execution_ids`, else the current execution, else one of its own.

    Args:
        result: what Ragas answered.
        metric: the name of a single `MetricResult`, which does not know it.
        metrics: columns of records that are metrics of your own.
        thresholds: by metric; gives a verdict. Without one none is invented.
        higher_is_better: by metric, where ours is not right for yours.
        scales: `(min, max)` by metric, for scores that are not between 0 and 1.
        execution_ids: the executions of the rows, in their order.
        answers: False keeps questions, answers and contexts here.
        run_id: your name of this run: sending the result twice then stores it once.

    Returns:
        The number of scores.
    """
    named = [metric] if metric else []
    choices = Choices([*metrics, *named], thresholds or {}, higher_is_better or {}, scales or {})
    rows = ragas_rows(result, choices, answers=answers)
    count = send_rows("ragas", rows, execution_ids=execution_ids, run_id=run_id)
    if not count:
        say_once("ragas:nothing", "emit_ragas found no scores in a %s", type(result).__name__)
        _client.count_lost("no scores found")
    return count


def ragas_rows(result: object, choices: Choices, *, answers: bool = True) -> Iterator[Row]:
    """Read the rows of a result."""
    for place, (scores, inputs) in enumerate(_pairs(result, choices)):
        found = [_score(name, value, choices) for name, value in scores.items()]
        texts = _texts(inputs)
        # The place alone would make one row of two results that are sent under one run id.
        key = f"{place}:{texts[0]}:{texts[1]}"
        yield Row(found, *texts, key) if answers else Row(found, key=key)


def _pairs(
    result: object, choices: Choices
) -> Iterable[tuple[Mapping[str, object], Mapping[str, object]]]:
    """Pair the scores of each row with its inputs."""
    if _is_metric_result(result):
        return [({choices.metrics[-1]: result}, {})] if choices.metrics else []
    if isinstance(result, Mapping) and isinstance(result.get("scores"), list):
        return _scored(result["scores"], _dumped_inputs(result))
    scores = getattr(result, "scores", None)
    if scores is not None:
        return _scored(scores, getattr(result, "dataset", None))
    return [(_metrics_of(row, choices), row) for row in _records(result)]


def _scored(
    scores: Iterable[Any], dataset: object
) -> Iterator[tuple[Mapping[str, object], Mapping[str, object]]]:
    inputs = [_fields(sample) for sample in dataset] if isinstance(dataset, Iterable) else []
    for place, row in enumerate(scores):
        yield _fields(row), inputs[place] if place < len(inputs) else {}


def _dumped_inputs(result: Mapping[str, object]) -> object:
    frame = result.get("to_pandas")
    return frame.get("to_json_records") if isinstance(frame, Mapping) else result.get("dataset")


def _records(result: object) -> Iterator[Mapping[str, object]]:
    if isinstance(result, Mapping):
        yield result
    elif hasattr(result, "columns") and hasattr(result, "to_dict"):
        yield from result.to_dict("records")
    elif isinstance(result, Iterable) and not isinstance(result, str | bytes):
        yield from (_fields(row) for row in result)


def _fields(row: object) -> Mapping[str, object]:
    if isinstance(row, Mapping):
        return row
    try:
        return vars(row)
    except TypeError:
        return {}


def _metrics_of(row: Mapping[str, object], choices: Choices) -> dict[str, object]:
    return {
        name: value
        for name, value in row.items()
        if isinstance(name, str) and (is_known(name) or name in choices.metrics)
    }


def _is_metric_result(value: object) -> bool:
    kind = type(value)
    return hasattr(kind, "value") and hasattr(kind, "reason")


def _score(name: str, value: object, choices: Choices) -> RowScore:
    metric = canonical(name)
    reading = read_score(_undumped(value))
    score = _snapped(reading.score)
    threshold = _chosen(choices.thresholds, name, metric)
    rising = _chosen(choices.higher_is_better, name, metric)
    upward = higher_is_better(metric) if rising is None else rising
    reason = _text(getattr(value, "reason", None))
    return RowScore(
        metric,
        reading.label if reading.label is not None else score,
        _verdict(score, threshold, upward=upward),
        threshold,
        upward,
        reason or (None if score is not None else "Ragas gave no number"),
        None if score is not None else "not_scored",
        _chosen(choices.scales, name, metric) or scale(metric),
        None if name == metric else {"ragas_metric": name},
    )


def _undumped(value: object) -> object:
    """Read a number that was written to JSON with its type, as NaN and numpy's have to be."""
    if isinstance(value, Mapping) and "__type__" in value:
        return value.get("item", value.get("value", value.get("repr")))
    return value


def _snapped(score: float | None) -> float | None:
    for edge in (0.0, 1.0):
        outside = score is not None and not 0.0 <= score <= 1.0
        if score is not None and outside and abs(score - edge) <= _TOLERANCE:
            return edge
    return score


def _verdict(score: float | None, threshold: float | None, *, upward: bool) -> bool | None:
    if score is None or threshold is None:
        return None
    return score >= threshold - _TOLERANCE if upward else score <= threshold + _TOLERANCE


def _chosen(choices: Mapping[str, Any], name: str, metric: str) -> Any:
    return choices.get(name, choices.get(metric))


def _texts(inputs: Mapping[str, object]) -> tuple[str | None, str | None, list[object] | None]:
    contexts = _first(inputs, _CONTEXTS)
    return (
        _text(_first(inputs, _QUESTIONS)),
        _text(_first(inputs, _ANSWERS)),
        list(contexts) if isinstance(contexts, list | tuple) else None,
    )


def _first(inputs: Mapping[str, object], names: Iterable[str]) -> object:
    return next((inputs[name] for name in names if inputs.get(name) is not None), None)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None

"""Ragas' results: every row's scores under their canonical names, and the texts they judge.

Source: evaluator-outputs.md, section 1.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mesedi import _client
from mesedi._ragas_metrics import canonical, higher_is_better, scale
from mesedi._ragas_shapes import Found, find_rows, is_metric_result
from mesedi._readings import printable, reaches, read_score, snapped
from mesedi._rows import Row, RowScore, read_row, report_nothing, send_rows

_QUESTIONS = ("user_input", "question")
_ANSWERS = ("response", "answer")
_CONTEXTS = ("retrieved_contexts", "contexts")
_ROW_IDS = ("row_id", "sample_id", "id")


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
    metric: object = None,
    metrics: Sequence[object] = (),
    thresholds: Mapping[str, float] | None = None,
    higher_is_better: Mapping[str, bool] | None = None,
    scales: Mapping[str, tuple[float, float]] | None = None,
    execution_ids: Sequence[str] | None = None,
    answers: bool = True,
    run_id: str | None = None,
) -> int:
    """Send all scores of a Ragas result, and each row's question, answer and contexts.

    Takes what `evaluate()` answers (0.1 to 0.4), a `MetricResult` or a list of them, an
    experiment, rows, records, a data frame. Each row goes to its entry of `execution_ids`, else
    the current execution, else one of its own.
    Rows beyond the first 10,000 are dropped, counted once.

    Args:
        result: what Ragas answered.
        metric: the metric, or its name, of a `MetricResult`, which does not know it.
        metrics: metrics, or columns of records, that are your own.
        thresholds: by metric; gives a verdict. Without one none is invented.
        higher_is_better: by metric, where ours is not right for yours.
        scales: `(min, max)` by metric, for scores that are not between 0 and 1; default: what
            a metric object passed as `metric` or in `metrics` allows.
        execution_ids: the executions of the rows, in their order.
        answers: False keeps questions, answers and contexts here.
        run_id: your name of this run: sending the result twice then stores it once.

    Returns:
        The number of scores.
    """
    own = [*metrics, *([] if metric is None else [metric])]
    choices = Choices(
        [_name_of(each) for each in own],
        thresholds or {},
        higher_is_better or {},
        {**_allowed(own), **(scales or {})},
    )
    rows = ragas_rows(result, choices, answers=answers)
    count = send_rows("ragas", rows, execution_ids=execution_ids, run_id=run_id)
    return count or report_nothing("ragas", result)


def ragas_rows(result: object, choices: Choices, *, answers: bool = True) -> Iterator[Row]:
    """Read the rows of a result."""
    for place, found in enumerate(find_rows(result, choices.metrics)):
        row = read_row(_row, place, found, choices)
        yield row if answers else Row(row.scores, key=row.key)


def _row(place: int, found: Found, choices: Choices) -> Row:
    scores = [_score(name, value, found, choices) for name, value in found.scores.items()]
    texts = _texts(found.inputs)
    # Experiments come in the order of completion: a row's own id is better than its place.
    ident = _first(found.inputs, _ROW_IDS)
    # The place alone would make one row of two results that are sent under one run id.
    return Row(scores, *texts, f"{place if ident is None else ident}:{texts[0]}:{texts[1]}")


def _name_of(metric: object) -> str:
    return metric if isinstance(metric, str) else str(getattr(metric, "name", metric))


def _allowed(metrics: Iterable[object]) -> dict[str, tuple[float, float]]:
    """Read the scales of metric objects; one of 0 to 1 is no news."""
    allowed = {}
    for metric in metrics:
        ends = getattr(metric, "allowed_values", None)
        if isinstance(ends, tuple) and len(ends) == 2 and ends != (0, 1):  # noqa: PLR2004
            allowed[_name_of(metric)] = ends
    return allowed


def _score(name: str, value: object, found: Found, choices: Choices) -> RowScore:
    metric = canonical(name)
    held = _held(value)
    reading = read_score(held)
    score = snapped(reading.score)
    threshold = _chosen(choices.thresholds, name, metric)
    rising = _chosen(choices.higher_is_better, name, metric)
    upward = higher_is_better(metric) if rising is None else rising
    compared = score is not None and threshold is not None
    return RowScore(
        metric,
        reading.label if reading.label is not None else score,
        reaches(score, threshold, upward=upward) if compared else None,  # type: ignore[arg-type]
        threshold,
        upward,
        _reason(name, value, found) or (None if score is not None else "Ragas gave no number"),
        None if score is not None else _status(found),
        _chosen(choices.scales, name, metric) or scale(metric),
        _details(name, metric, held),
    )


def _held(value: object) -> object:
    """Read a value that was written to JSON with its type, as NaN and numpy's have to be."""
    if isinstance(value, Mapping):
        names = ("item", "value", "result", "repr")
        return next((value[name] for name in names if name in value), None)
    return value.value if is_metric_result(value) else value  # type: ignore[attr-defined]


def _reason(name: str, value: object, found: Found) -> str | None:
    own = value.get("reason") if isinstance(value, Mapping) else getattr(value, "reason", None)
    words = own if isinstance(own, str) and own else found.reasons.get(name)
    return printable(words) if words else None


def _status(found: Found) -> str:
    """Tell a row on which every metric failed from a single judgement that is missing."""
    scores = [read_score(_held(value)).score for value in found.scores.values()]
    return "error" if len(scores) > 1 and not any(s is not None for s in scores) else "not_scored"


def _details(name: str, metric: str, held: object) -> dict[str, object] | None:
    details: dict[str, object] = {} if name == metric else {"ragas_metric": name}
    if isinstance(held, list | tuple):
        details["value"] = held  # a ranking: worth keeping, but no score
    return details or None


def _chosen(choices: Mapping[str, Any], name: str, metric: str) -> Any:
    return choices.get(name, choices.get(metric))


def _texts(inputs: Mapping[str, object]) -> tuple[str | None, str | None, list[object] | None]:
    question, answer = _first(inputs, _QUESTIONS), _first(inputs, _ANSWERS)
    if isinstance(question, list | tuple):
        question, answer = _conversation(question)
    return _text(question), _text(answer), _listed(_first(inputs, _CONTEXTS))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _listed(contexts: object) -> list[object] | None:
    """Read a list of contexts, also out of an array, or out of a CSV's cell that holds JSON."""
    if hasattr(contexts, "tolist"):
        contexts = contexts.tolist()
    if isinstance(contexts, str):
        try:
            contexts = json.loads(contexts)
        except ValueError:
            return [contexts]
    return list(contexts) if isinstance(contexts, list | tuple) else None


def _conversation(messages: Sequence[Any]) -> tuple[object, object]:
    """Answer what was asked last, and what the assistant said last."""
    told = [(_part(message, "type"), _part(message, "content")) for message in messages]
    asked = [content for kind, content in told if kind == "human"]
    said = [content for kind, content in told if kind == "ai"]
    return asked[-1] if asked else None, said[-1] if said else None


def _part(message: object, name: str) -> object:
    if isinstance(message, Mapping):
        return message.get(name)
    return getattr(message, name, None)


def _first(inputs: Mapping[str, object], names: Iterable[str]) -> object:
    return next((inputs[name] for name in names if inputs.get(name) is not None), None)

"""The rows of a Ragas result, recognised by its shape: Ragas itself is never imported.

Source: evaluator-outputs.md, section 1.1.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from mesedi._ragas_metrics import is_known
from mesedi._ragas_traces import reasons_of
from mesedi._rows import MOST_ROWS

_Fields: TypeAlias = Mapping[str, Any]


class Found(NamedTuple):
    """One row: its scores by Ragas' names, its inputs, and reasons by metric where known."""

    scores: _Fields
    inputs: _Fields
    reasons: Mapping[str, str] = {}


def find_rows(result: object, metrics: Sequence[str]) -> Iterable[Found]:
    """Find the rows; `metrics` names the caller's own, a single result's last of all."""
    if is_metric_result(result):
        return [Found({metrics[-1]: result}, {})] if metrics else []
    if isinstance(result, Mapping) and isinstance(result.get("scores"), list):
        return _scored(result["scores"], _dumped_inputs(result), result.get("traces"))
    scores = getattr(result, "scores", None)
    if scores is not None:
        return _scored(scores, getattr(result, "dataset", None), getattr(result, "traces", None))
    return (_found(row, metrics) for row in _records(result, metrics))


def is_metric_result(value: object) -> bool:
    """Tell a `MetricResult`, alive or as it was written to JSON."""
    if isinstance(value, Mapping):
        return str(value.get("__type__", "")).endswith("MetricResult") or (
            set(value) <= {"value", "result", "reason", "traces"}
            and "reason" in value
            and len(value) > 1
        )
    return hasattr(type(value), "value") and hasattr(value, "reason")


def _scored(scores: Iterable[Any], dataset: object, traces: object) -> Iterator[Found]:
    inputs = [_fields(sample) for sample in _first_of(dataset)]
    told = list(_first_of(traces))
    for place, row in enumerate(scores):
        found = _fields(row)
        reasons = reasons_of(told[place], found) if place < len(told) else {}
        yield Found(found, inputs[place] if place < len(inputs) else {}, reasons)


def _first_of(items: object) -> Iterator[Any]:
    return islice(items, MOST_ROWS) if isinstance(items, Iterable) else iter(())


def _dumped_inputs(result: _Fields) -> object:
    frame = result.get("to_pandas")
    return frame.get("to_json_records") if isinstance(frame, Mapping) else result.get("dataset")


def _records(result: object, metrics: Sequence[str]) -> Iterator[_Fields]:
    if isinstance(result, Mapping):
        rows = result.get("rows")
        yield from rows if isinstance(rows, list) else (result,)
    elif hasattr(result, "columns") and hasattr(result, "to_dict"):
        # All at once, so no more than are sent, and one to show that there are more.
        frame: Any = result.head(MOST_ROWS + 1) if hasattr(result, "head") else result
        yield from frame.to_dicts() if hasattr(frame, "to_dicts") else frame.to_dict("records")
    elif isinstance(result, Iterable) and not isinstance(result, str | bytes):
        for row in result:
            if not is_metric_result(row):
                yield _fields(row)
            elif metrics:
                yield {metrics[-1]: row}


def _fields(row: object) -> _Fields:
    if isinstance(row, Mapping):
        return row
    try:
        return vars(row)
    except TypeError:
        return {}


def _found(row: _Fields, metrics: Sequence[str]) -> Found:
    scores = {
        name: value
        for name, value in row.items()
        if isinstance(name, str) and (name in metrics or is_known(name) or is_metric_result(value))
    }
    beside = {name: row.get(f"{name}_reason") for name in scores}
    return Found(scores, row, {name: r for name, r in beside.items() if isinstance(r, str)})

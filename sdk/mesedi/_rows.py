"""Rows of an evaluator's result: each with its scores and, where it has one, its answer."""

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mesedi import _client
from mesedi._events import record_answer
from mesedi._executions import current_execution, execution
from mesedi._guard import say_once
from mesedi._scores import emit_eval_score
from mesedi._tally import SAMPLED_OUT

MOST_ROWS = 10_000
"""Rows that one call takes: the caller waits for it, and a generator may have no end."""

_DIGITS = 32  # 128 bits, like every id of ours


@dataclass(frozen=True)
class RowScore:
    """One score of one row, as its evaluator meant it."""

    metric: str
    score: object
    passed: bool | None = None
    threshold: float | None = None
    higher_is_better: bool = True
    reason: str | None = None
    status: str | None = None
    scale: tuple[float, float] | None = None
    metadata: Mapping[str, object] | None = None


@dataclass(frozen=True)
class Row:
    """What one row says; `answer` None means that its text is not known."""

    scores: list[RowScore] = field(default_factory=list)
    question: str | None = None
    answer: str | None = None
    contexts: Sequence[object] | None = None
    key: str | None = None
    """What tells this row from the others of its run; default: its place."""


def send_rows(
    evaluator: str,
    rows: Iterable[Row],
    *,
    execution_ids: Sequence[str] | None = None,
    run_id: str | None = None,
) -> int:
    """Send each row to `execution_ids`' one, else the current execution, else its own.

    With `run_id` all ids follow from it, so that sending a result twice stores it once.
    Answers the number of scores. Rows beyond `MOST_ROWS` are not even read.
    """
    count = 0
    for place, row in enumerate(rows):
        if place == MOST_ROWS:
            _report_rest(evaluator)
            break
        if not row.scores:
            continue
        ids = _DerivedIds(run_id, row.key or str(place))
        target = execution_ids[place] if execution_ids and place < len(execution_ids) else None
        around = current_execution()
        own = None if target is not None or around is not None else execution(ids.name("exec"))
        unit = target or (around.id if around else own.id if own else "")
        if _admitted(evaluator, unit, len(row.scores)):
            with own or contextlib.nullcontext():
                _send_row(evaluator, row, target, ids)
        count += len(row.scores)
    return count


def _report_rest(evaluator: str) -> None:
    say_once("rows", "emit_%s takes %d rows a call; the rest is dropped", evaluator, MOST_ROWS)
    _client.count_lost("rows beyond the most a call takes")


def _admitted(evaluator: str, unit: str, scores: int) -> bool:
    """Tell whether this row goes out; a row without its scores would be of no use."""
    client = _client.current()
    if client is None or client.sampling is None:
        return True
    if client.sampling.admit(evaluator, unit) is not None:
        return True
    client.shipper.drop(SAMPLED_OUT, scores)
    return False


def read_row(read: Callable[..., Row], *args: object, **kwargs: object) -> Row:
    """Read one row; one that cannot be read is counted, and its neighbours go on."""
    try:
        return read(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - foreign objects raise what they like
        say_once("row", "A row of a result cannot be read: %s", type(error).__name__)
        _client.count_lost("unreadable row")
        return Row()


def report_nothing(evaluator: str, result: object) -> int:
    """Say and count that no scores were found; answers their number, 0."""
    kind = type(result).__name__
    say_once(f"{evaluator}:nothing", "emit_%s found no scores in a %s", evaluator, kind)
    _client.count_lost("no scores found")
    return 0


class _DerivedIds:
    """Ids that follow from the run and the row; all None when the run has no id."""

    def __init__(self, run_id: str | None, row: str) -> None:
        self._parts = None if run_id is None else (run_id, row)

    def name(self, kind: str, *parts: str) -> str | None:
        if self._parts is None:
            return None
        # The lengths keep ("a", "bc") and ("ab", "c") apart.
        told = "".join(f"{len(part)}:{part}" for part in (kind, *self._parts, *parts))
        return f"{kind}-{hashlib.sha256(told.encode('utf-8', 'replace')).hexdigest()[:_DIGITS]}"


def _send_row(evaluator: str, row: Row, target: str | None, ids: _DerivedIds) -> None:
    answer_id = None
    if row.answer is not None:
        answer_id = record_answer(
            row.question or "",
            row.answer,
            row.contexts,
            answer_id=ids.name("ans", evaluator),
            execution_id=target,
            event_id=ids.name("evt", evaluator, "answer"),
        )
    for position, score in enumerate(row.scores):
        emit_eval_score(
            evaluator,
            score.metric,
            score.score,
            score.passed,
            score.threshold,
            score.higher_is_better,
            score.reason,
            execution_id=target,
            answer_id=answer_id,
            scale=score.scale,
            status=score.status,
            metadata=score.metadata,
            event_id=ids.name("evt", evaluator, score.metric, str(position)),
        )

"""Rows of an evaluator's result: each with its scores and, where it has one, its answer."""

import contextlib
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mesedi._events import emit_eval_score, record_answer
from mesedi._executions import current_execution, execution

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
    Answers the number of scores.
    """
    count = 0
    for place, row in enumerate(rows):
        if not row.scores:
            continue
        ids = _DerivedIds(run_id, row.key or str(place))
        target = execution_ids[place] if execution_ids and place < len(execution_ids) else None
        inside = target is not None or current_execution() is not None
        with contextlib.nullcontext() if inside else execution(ids.name("exec")):
            _send_row(evaluator, row, target, ids)
        count += len(row.scores)
    return count


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

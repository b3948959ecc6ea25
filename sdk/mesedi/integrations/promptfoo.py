"""Single promptfoo scores under the reference's evaluator ids."""

from mesedi._integrations import nameless
from mesedi._scores import emit_eval_score

_THRESHOLD = 0.5


def report_factuality(
    score: float,
    passed: bool,  # noqa: FBT001 - the reference takes it by position
    threshold: float = _THRESHOLD,
    reason: str = "",
) -> None:
    """Send a factuality score with promptfoo's own verdict."""
    emit_eval_score(
        "promptfoo/factuality", "factuality", score, passed, threshold, reason=reason or None
    )


def report_llm_rubric(
    metric_name: str,
    score: float,
    passed: bool,  # noqa: FBT001 - the reference takes it by position
    threshold: float = _THRESHOLD,
    reason: str = "",
) -> None:
    """Send the score of a rubric that goes by a name; without one it is counted as lost."""
    name = str(metric_name or "").strip()
    if not name:
        nameless("report_llm_rubric")
        return
    evaluator = f"promptfoo/llm-rubric/{name}"
    emit_eval_score(evaluator, name, score, passed, threshold, reason=reason or None)

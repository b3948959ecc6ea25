"""What the helpers with the reference's names share."""

from mesedi import _client
from mesedi._guard import say_once
from mesedi._readings import read_score
from mesedi._scores import emit_eval_score


def report(evaluator: str, metric: str, score: object, threshold: float, reason: str) -> None:
    """Send a score with the verdict that follows from `threshold`; without a number, none."""
    value = read_score(score).score
    emit_eval_score(
        evaluator,
        metric,
        value,
        None if value is None else value >= threshold,
        threshold,
        reason=reason or None,
        status="not_scored" if value is None else None,
    )


def nameless(helper: str) -> None:
    """Count a score that has no name to go by."""
    say_once(helper, "%s needs a metric_name: the score is dropped", helper)
    _client.count_lost("no metric")

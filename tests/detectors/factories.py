"""Events for tests: what a test does not name is plain."""

from datetime import UTC, datetime, timedelta
from itertools import count

from detectors import EvalScore, HumanIntervention, ValidatorResult

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


_numbers = count(1)


def make_score(
    score: float | None = 0.9, passed=None, pair: str = "ragas/faithfulness", **rest
) -> EvalScore:
    """Make a score of a pair written `evaluator/metric`, later than all made before."""
    number = next(_numbers)
    evaluator_id, metric_type = pair.split("/")
    fields = {
        "event_id": f"evt-{number:08}",
        "sequence": number,
        "timestamp": at(number),
        "evaluator_id": evaluator_id,
        "metric_type": metric_type,
        "score": score,
        "passed": passed,
    }
    return EvalScore(**fields | rest)


def make_result(name: str = "schema", **rest) -> ValidatorResult:
    """Make a result of a validator, a failure unless `passed` says otherwise."""
    number = next(_numbers)
    fields = {
        "event_id": f"evt-{number:08}",
        "sequence": number,
        "timestamp": at(number),
        "name": name,
        "passed": False,
    }
    return ValidatorResult(**fields | rest)


def make_intervention(
    response_kind: str = "approved", execution_id: str = "exec-1", **rest
) -> HumanIntervention:
    number = next(_numbers)
    fields = {
        "event_id": f"evt-{number:08}",
        "sequence": 0,
        "timestamp": at(number),
        "execution_id": execution_id,
        "request_id": f"hitl-{number}",
        "response_kind": response_kind,
    }
    return HumanIntervention(**fields | rest)

"""What clients send, for tests: what a test does not name is plain."""

from datetime import UTC, datetime, timedelta
from itertools import count

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)

TOO_DEEP = "(repeat('[', 12000) || repeat(']', 12000))::jsonb"
"""SQL of a value that no door lets in: PostgreSQL keeps it, and no Python up to 3.13 reads it."""

_numbers = count(1)


def at(seconds: float) -> str:
    """A time as the SDK writes it, some seconds after noon."""
    return (NOON + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def make_execution(execution_id: str = "exec-1", **fields) -> dict:
    """A body of `POST /executions`."""
    plain = {
        "execution_id": execution_id,
        "status": "started",
        "started_at": at(0),
        "sdk_language": "python",
        "sdk_version": "0.7.0",
    }
    return plain | fields


def make_close(status: str = "completed", **fields) -> dict:
    """A body of the `PATCH` that closes an execution."""
    return {"status": status, "ended_at": at(1), "duration_ms": 1000} | fields


def make_event(execution_id: str = "exec-1", event_type: str = "checkpoint", **fields) -> dict:
    """An event with an id of its own, later than all made before."""
    number = next(_numbers)
    plain = {
        "event_id": f"evt-{number:08}",
        "execution_id": execution_id,
        "event_type": event_type,
        "sequence": number,
        "timestamp": at(number),
        "payload": {"name": "plan", "metadata": {}},
    }
    return plain | fields


def make_score(
    score=0.9, passed=None, pair: str = "ragas/faithfulness", execution_id="exec-1", **payload
) -> dict:
    """An eval_score of a pair written `evaluator/metric`; `payload` overrides its fields."""
    evaluator_id, metric_type = pair.split("/")
    plain = {
        "evaluator_id": evaluator_id,
        "metric_type": metric_type,
        "score": score,
        "passed": passed,
        "higher_is_better": True,
    }
    return make_event(execution_id, "eval_score", payload=plain | payload)

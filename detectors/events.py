"""What detectors read: one tuple an event type, as light as a database row.

A payload may hold anything. Its readers take a field of a wrong type for an absent one, because
ingest stores events that no detector understands.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from operator import itemgetter
from typing import NamedTuple

MAX_MESSAGE = 500
"""Characters that are kept of a validator's message and of an evaluator's reason."""

MAX_CATEGORY = 80
"""Characters that are kept of a validator's category."""

_SEVERITIES = ("critical", "error", "warning")
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


EVENT_ORDER = itemgetter(1, 2, 0)
"""Sort key of every event below: (sequence, timestamp, event_id)."""


class EvalScore(NamedTuple):
    """One evaluator's word on one output.

    `score` None or not finite: unmeasured. `passed` None: no verdict. `scale_min` and `scale_max`
    say what range the score lies in; without both, finite and in this order, it is taken as it is.
    """

    event_id: str
    sequence: int
    timestamp: datetime
    evaluator_id: str
    metric_type: str
    score: float | None = None
    passed: bool | None = None
    higher_is_better: bool = True
    scale_min: float | None = None
    scale_max: float | None = None
    reason: str | None = None


class ValidatorResult(NamedTuple):
    """The outcome of one code-driven yes/no check; `passed` None is neither."""

    event_id: str
    sequence: int
    timestamp: datetime
    name: str
    passed: bool | None
    severity: str = "error"
    message: str | None = None
    category: str = ""

    @classmethod
    def from_payload(
        cls, event_id: str, sequence: int, timestamp: datetime, payload: object
    ) -> "ValidatorResult":
        """Read a `validator_result` payload (wire.md 2 and 4.2).

        A severity other than critical, error and warning is an error.
        """
        fields = _fields(payload)
        passed, severity = fields.get("passed"), _text(fields, "severity")
        return cls(
            event_id,
            sequence,
            timestamp,
            name=_text(fields, "name"),
            passed=passed if isinstance(passed, bool) else None,
            severity=severity if severity in _SEVERITIES else "error",
            message=_text(fields, "message")[:MAX_MESSAGE] or None,
            category=_label(_text(fields, "category")),
        )


class HumanIntervention(NamedTuple):
    """A person's answer to an agent's question, or the lack of one."""

    event_id: str
    sequence: int
    timestamp: datetime
    execution_id: str
    request_id: str
    response_kind: str
    decided_at: datetime | None = None
    wait_duration_ms: int | None = None
    sla_seconds: int | None = None

    @classmethod
    def from_payload(
        cls,
        event_id: str,
        sequence: int,
        timestamp: datetime,
        execution_id: str,
        payload: object,
    ) -> "HumanIntervention":
        """Read a `human_intervention` payload (wire.md 2 and 4.3).

        Numbers must be whole numbers, `decided_at` a time with its zone (RFC 3339).
        """
        fields = _fields(payload)
        return cls(
            event_id,
            sequence,
            timestamp,
            execution_id,
            request_id=_text(fields, "request_id"),
            response_kind=_text(fields, "response_kind"),
            decided_at=_time(_text(fields, "decided_at")),
            wait_duration_ms=_whole_number(fields, "wait_duration_ms"),
            sla_seconds=_whole_number(fields, "sla_seconds"),
        )

    @property
    def effective_at(self) -> datetime:
        """When the decision was made, as far as is known: else the time of its event."""
        return self.decided_at or self.timestamp


def _fields(payload: object) -> Mapping[str, object]:
    return payload if isinstance(payload, Mapping) else {}


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _whole_number(fields: Mapping[str, object], name: str) -> int | None:
    value = fields.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _label(text: str) -> str:
    return _CONTROL_CHARACTERS.sub("", text).strip()[:MAX_CATEGORY].rstrip()


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
        return time.astimezone(UTC) if time.tzinfo else None
    except (ValueError, OverflowError):  # no time at all, or one outside the years 1 to 9999
        return None

"""What travels: an execution's start, pauses and end, its scores and its other observations.

Captured on the caller's thread as small immutable tuples; spelled out for the wire on the
sender's. `execution_id` is "" for a score that no execution holds: it gets one of its own.
What an earlier process had saved for this one travels as the text that it was saved as.
"""

import datetime as dt
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias, TypeGuard
from urllib.parse import quote

from mesedi._fitting import CUT
from mesedi._ids import Ids
from mesedi._plain import Json
from mesedi._version import __version__

_MAX_REASON = 8_000  # evaluators put stack traces and whole prompts there


class Start(NamedTuple):
    """An execution has begun."""

    number: int
    execution_id: str
    at: float
    labels: Mapping[str, str]

    @property
    def method(self) -> str:
        """How the report goes."""
        return "POST"

    @property
    def size(self) -> int:
        """Bytes of text beyond the tuple: none to speak of."""
        return 0

    @property
    def path(self) -> str:
        """Where the report goes."""
        return "/executions"

    def wire(self, _ids: Ids) -> dict[str, Json]:
        """Spell the body; always `started`, whatever has become of the execution since."""
        return {
            "execution_id": self.execution_id,
            "status": "started",
            "started_at": rfc3339(self.at),
            "sdk_language": "python",
            "sdk_version": __version__,
            **self.labels,
        }


class Turn(NamedTuple):
    """An execution waits for a human, or goes on: it is open in either case."""

    number: int
    execution_id: str
    status: str

    @property
    def method(self) -> str:
        """How the report goes."""
        return "PATCH"

    @property
    def size(self) -> int:
        """Bytes of text beyond the tuple: none to speak of."""
        return 0

    @property
    def path(self) -> str:
        """Where the report goes."""
        return execution_path(self.execution_id)

    def wire(self, _ids: Ids) -> dict[str, Json]:
        """Spell the body."""
        return {"status": self.status}


class Ending(NamedTuple):
    """An execution has ended with a terminal status."""

    number: int
    execution_id: str
    at: float
    status: str
    duration_ms: int
    crash_signature: str | None

    @property
    def method(self) -> str:
        """How the report goes."""
        return "PATCH"

    @property
    def size(self) -> int:
        """Bytes of text beyond the tuple: none to speak of."""
        return 0

    @property
    def path(self) -> str:
        """Where the report goes."""
        return execution_path(self.execution_id)

    def wire(self, _ids: Ids) -> dict[str, Json]:
        """Spell the body."""
        body: dict[str, Json] = {
            "status": self.status,
            "ended_at": rfc3339(self.at),
            "duration_ms": self.duration_ms,
        }
        if self.crash_signature:
            body["crash_signature"] = self.crash_signature
        return body


class Score(NamedTuple):
    """One verdict of one evaluator: kept flat, since a burst may hold thousands of them."""

    number: int
    execution_id: str
    sequence: int | None
    at: float
    evaluator: str
    metric: str
    score: float | None
    passed: bool | None
    threshold: float | None
    higher_is_better: bool
    reason: str | None
    confidence: float | None
    extra: Mapping[str, Json] | None
    event_id: str | None

    @property
    def size(self) -> int:
        """Bytes that the text takes beyond the tuple, roughly."""
        return len(self.reason) if self.reason else 0

    def wire(self, ids: Ids) -> dict[str, Json]:
        """Spell the event."""
        return _event(self, ids, "eval_score", self._payload())

    def _payload(self) -> dict[str, Json]:
        payload: dict[str, Json] = {
            "evaluator_id": self.evaluator,
            "metric_type": self.metric,
            "score": self.score,
            "higher_is_better": self.higher_is_better,
        }
        optional = {
            "passed": self.passed,
            "threshold": self.threshold,
            "reason": self.reason and _shortened(self.reason),
            "confidence": self.confidence,
        }
        payload.update((name, value) for name, value in optional.items() if value is not None)
        payload.update(self.extra or {})
        if self.score is None:
            payload.setdefault("status", "not_scored")
        return payload


class Observation(NamedTuple):
    """An event of any other type; `content` is our own copy."""

    number: int
    execution_id: str
    sequence: int | None
    at: float
    event_type: str
    content: Json
    size: int
    event_id: str | None
    duration_ms: int | None = None

    def wire(self, ids: Ids) -> dict[str, Json]:
        """Spell the event."""
        body = _event(self, ids, self.event_type, self.content)
        return body if self.duration_ms is None else {**body, "duration_ms": self.duration_ms}


class SavedEvent(NamedTuple):
    """An event of an earlier process, as JSON."""

    execution_id: str
    text: str

    @property
    def size(self) -> int:
        """Bytes of text that it takes of the queue: none, it waits on the disk."""
        return 0


class SavedReport(NamedTuple):
    """A start, pause or end of an earlier process, as JSON."""

    execution_id: str
    method: str
    path: str
    text: str

    @property
    def size(self) -> int:
        """As for events."""
        return 0


Event: TypeAlias = Score | Observation | SavedEvent
Report: TypeAlias = Start | Turn | Ending | SavedReport
Piece: TypeAlias = Event | Report


def is_event(piece: Piece) -> TypeGuard[Event]:
    """Tell events from the reports of an execution's start and end."""
    return isinstance(piece, Score | Observation | SavedEvent)


def is_report(piece: Piece) -> TypeGuard[Report]:
    """Tell the reports of an execution's course from its events."""
    return not is_event(piece)


def is_alone(piece: Piece) -> TypeGuard[Score | Observation]:
    """Tell the events that no execution holds."""
    return isinstance(piece, Score | Observation) and not piece.execution_id


def with_own_execution(
    event: Score | Observation, ids: Ids, labels: Mapping[str, str]
) -> tuple[Start, Event, Ending]:
    """Give an event that no execution holds one of its own."""
    name = ids.name("exec", event.number)
    return (
        Start(event.number, name, event.at, labels),
        event._replace(execution_id=name),
        Ending(event.number, name, event.at, "completed", 0, None),
    )


def execution_path(execution_id: str) -> str:
    """Answer the address of one execution."""
    return f"/executions/{quote(execution_id, safe='', errors='replace')}"


def rfc3339(at: float) -> str:
    """Spell a Unix time in UTC with microseconds."""
    moment = dt.datetime.fromtimestamp(at, dt.timezone.utc)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _event(event: Score | Observation, ids: Ids, event_type: str, payload: Json) -> dict[str, Json]:
    body: dict[str, Json] = {
        "event_id": event.event_id or ids.name("evt", event.number),
        "execution_id": event.execution_id,
        "event_type": event_type,
        "timestamp": rfc3339(event.at),
        "payload": payload,
    }
    if event.sequence is not None:
        body["sequence"] = event.sequence
    return body


def _shortened(reason: str) -> str:
    return reason if len(reason) <= _MAX_REASON else reason[:_MAX_REASON] + CUT

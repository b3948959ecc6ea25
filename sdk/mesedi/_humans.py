"""A human in the loop: the question is sent when it is asked, the decision when it falls.

Nothing here waits for the server, and a server in trouble does not break the agent.
"""

import datetime as dt
import time
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from mesedi import _client
from mesedi._events import send_event
from mesedi._executions import current_execution, execution
from mesedi._guard import harmless
from mesedi._pieces import Ending, Turn, rfc3339
from mesedi._plain import plain, printed

_EVENT = "human_intervention"


@dataclass(frozen=True)
class HumanInterventionHandle:
    """An open question; `to_dict` and `from_dict` take it to the process that learns the answer."""

    request_id: str = ""
    execution_id: str = ""
    question: str = ""
    requested_at: str = ""
    """RFC 3339, UTC."""
    sla_seconds: int = 0
    metadata: Mapping[str, object] = field(default_factory=dict)
    owns_execution: bool = False
    """The question stands alone: its execution ends with the decision."""

    def to_dict(self) -> dict[str, object]:
        """Answer what `from_dict` needs, as plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, told: Mapping[str, object]) -> "HumanInterventionHandle":
        """Take up a question that was asked elsewhere; unknown members are left out."""
        known = {name: told[name] for name in cls.__dataclass_fields__ if name in told}
        return cls(**known)  # type: ignore[arg-type]

    @harmless
    def complete(
        self,
        response_kind: str,
        response_payload: Mapping[str, object] | None = None,
        decided_by: str = "",
    ) -> None:
        """Send the decision and let the execution go on. The first one counts.

        Args:
            response_kind: `approved`, `rejected`, `edited`, `timeout`, `cancelled`, or your own.
            response_payload: what was decided in detail; copied.
            decided_by: who decided.
        """
        now = time.time()
        waited_ms = _milliseconds(self.requested_at, now)
        payload = {
            **self._payload(),
            "response_kind": printed(response_kind),
            "decided_at": rfc3339(now),
            "wait_duration_ms": waited_ms,
        }
        payload.update({} if response_payload is None else {"response_payload": response_payload})
        payload.update({"decided_by": decided_by} if decided_by else {})
        # Another process, or a second call, sends the same id: the server stores the first.
        send_event(
            _EVENT,
            payload,
            execution_id=self.execution_id,
            event_id=f"evt-{self.request_id}-decided",
            duration_ms=waited_ms,
        )
        if self.owns_execution:
            _end(self.execution_id, waited_ms)
        else:
            _turn(self.execution_id, "started")

    def _payload(self) -> dict[str, object]:
        payload: dict[str, object] = {
            "request_id": self.request_id,
            "question": self.question,
            "requested_at": self.requested_at,
        }
        payload.update({"sla_seconds": self.sla_seconds} if self.sla_seconds else {})
        payload.update({"metadata": self.metadata} if self.metadata else {})
        return payload


def request_human_intervention(
    question: str,
    sla_seconds: int = 0,
    metadata: Mapping[str, object] | None = None,
    *,
    execution_id: str | None = None,
) -> HumanInterventionHandle:
    """Send a question to a human; the execution waits from now on.

    Args:
        question: what is asked.
        sla_seconds: in how many seconds an answer is due; 0: whenever.
        metadata: what the human needs to know; copied.
        execution_id: default: the current execution, else one of its own.

    Returns:
        The open question; `complete` closes it.
    """
    run = current_execution()
    place = execution_id or (run.id if run else None)
    own = None if place else execution()
    handle = HumanInterventionHandle(
        f"hitl-{uuid.uuid4().hex}",
        place or (own.id if own else ""),
        printed(question),
        rfc3339(time.time()),
        sla_seconds,
        _copied(metadata),
        own is not None,
    )
    if own is not None:
        own.start()
    _ask(handle)
    return handle


@harmless
def pause_for_human(execution_id: str | None = None) -> None:
    """Say that the execution (default: the current one) waits for a human."""
    _turn(execution_id, "awaiting_human")


@harmless
def resume_for_agent(execution_id: str | None = None) -> None:
    """Say that the execution (default: the current one) goes on."""
    _turn(execution_id, "started")


@harmless
def _ask(handle: HumanInterventionHandle) -> None:
    # Without a `response_kind` it is no decision yet.
    send_event(
        _EVENT,
        handle._payload(),  # noqa: SLF001 - its own module
        execution_id=handle.execution_id,
        event_id=f"evt-{handle.request_id}-asked",
    )
    _turn(handle.execution_id, "awaiting_human")


def _turn(execution_id: str | None, status: str) -> None:
    run = current_execution()
    place = execution_id or (run.id if run else None)
    client = _client.for_emitting()
    if client is not None and place is None:
        _client.count_lost("no execution")
    elif client is not None and place is not None:
        client.put(Turn(client.ids.take(), place, status))


def _end(execution_id: str, took_ms: int) -> None:
    client = _client.for_emitting()
    if client is not None:
        number = client.ids.take()
        client.put(Ending(number, execution_id, time.time(), "completed", took_ms, None))


def _copied(metadata: object) -> dict[str, object]:
    copy = plain(metadata)[0] if isinstance(metadata, Mapping) else None
    return {**copy} if isinstance(copy, dict) else {}


def _milliseconds(since: str, now: float) -> int:
    try:
        began = dt.datetime.fromisoformat(since.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0
    return max(0, round((now - began) * 1000))

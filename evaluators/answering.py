"""Let a target answer a stream, one request at a time, each stored before it is sent."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

from evaluators.canonical import digest
from evaluators.dataset import text_of
from evaluators.errors import CaptureFailedError
from evaluators.store import answers, attempts, state
from evaluators.store.attempts import Attempt
from evaluators.store.database import Connection, transaction
from evaluators.store.plan import PlannedTurn
from evaluators.targets import Message, Target, checked

USED_UP = "target_calls_used_up"
"""The kind of failure of a run that may ask its targets no more."""

_READ_AHEAD = 100


def answer_turns(
    connection: Connection,
    run_id: str,
    stream: str,
    asking: "Asking",
    told: Callable[[int], None],
) -> None:
    """Commit every missing turn of a stream. The first failure raises CaptureFailedError."""
    conversation = _Conversation(connection)
    while turns := answers.turns_from(
        connection, stream, state.committed_turns(connection, stream), _READ_AHEAD
    ):
        for turn, record in turns:
            messages = conversation.before(turn)
            if turn.role == "assistant":
                attempt_id, answer = asking.ask(turn, messages)
                with transaction(connection):
                    attempts.end_attempt(connection, attempt_id, "succeeded")
                    answers.commit_generated(connection, run_id, turn, attempt_id, answer)
                conversation.add(turn, answer["text"])
            else:
                with transaction(connection):
                    answers.commit_given(connection, turn)
                conversation.add(turn, text_of(record))
            told(1)


def used_up(max_calls: int) -> str:
    """Say that a run may ask its targets no more, and what to do about it."""
    return (
        f"the run's {max_calls} target calls are used up; "
        f"mesedi-eval resume RUN --target … --max-target-calls N allows it more"
    )


def message_digest(messages: list[Message]) -> str:
    """Digest of the input of an attempt."""
    return digest(messages)


def messages_before(connection: Connection, turn: PlannedTurn) -> list[Message]:
    """Return what a target is sent for a turn: all that was said before it in its session."""
    said = answers.said(connection, turn.stream, turn.session_id, turn.ordinal)
    return [{"role": role, "content": text} for _, role, text in said]


class _Conversation:
    """The messages of the current session, so that a long session is read once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._session: str | None = None
        self._messages: list[Message] = []

    def before(self, turn: PlannedTurn) -> list[Message]:
        if turn.session_id != self._session:
            self._session = turn.session_id
            self._messages = messages_before(self._connection, turn)
        return [dict(message) for message in self._messages]

    def add(self, turn: PlannedTurn, text: str) -> None:
        self._messages.append({"role": turn.role, "content": text})


@dataclass(frozen=True, slots=True)
class Asking:
    """One target, and how often it may be asked in this run (None for no limit)."""

    connection: Connection
    target: Target
    max_calls: int | None
    directory: Path

    def ask(self, turn: PlannedTurn, messages: list[Message]) -> tuple[str, dict[str, Any]]:
        """Send one request; return its attempt's id and the answer, or raise."""
        attempt = self._begin(turn, messages)
        try:
            reply = self.target.provider.chat(messages, request_id=attempt.request_id)
        except KeyboardInterrupt:
            with transaction(self.connection):
                attempts.end_attempt(self.connection, attempt.id, "unknown_outcome", "interrupted")
            raise
        except TimeoutError as error:
            self._fail(attempt, "unknown_outcome", "timeout", error)
        except Exception as error:  # noqa: BLE001 - a provider may raise anything
            self._fail(attempt, "unknown_outcome", "provider_error", error)
        try:
            return attempt.id, checked(reply)
        except (ValueError, TypeError, RecursionError) as error:
            self._fail(attempt, "failed", "invalid_response", error)

    def _begin(self, turn: PlannedTurn, messages: list[Message]) -> Attempt:
        if self.max_calls is not None and attempts.attempt_count(self.connection) >= self.max_calls:
            with transaction(self.connection):
                state.set_state(self.connection, state.RunState("failed", "capture", USED_UP))
            raise CaptureFailedError(self.directory, used_up(self.max_calls))
        earlier = attempts.attempts_of(self.connection, turn.stream, turn.ordinal)
        request_id = earlier[0].request_id if earlier else str(uuid4())
        attempt = Attempt(str(uuid4()), request_id, message_digest(messages), "running")
        with transaction(self.connection):
            attempts.begin_attempt(self.connection, turn, attempt)
        return attempt

    def _fail(self, attempt: Attempt, status: str, kind: str, error: Exception) -> NoReturn:
        name = type(error).__name__
        with transaction(self.connection):
            attempts.end_attempt(self.connection, attempt.id, status, kind, name)
            state.set_state(self.connection, state.RunState("failed", "capture", kind, name))
        raise CaptureFailedError(self.directory, f"the target failed: {kind} ({name})") from error

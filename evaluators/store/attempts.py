"""Requests to a target: stored before they are sent, never sent again by themselves."""

import sqlite3
from dataclasses import dataclass
from typing import Any

from evaluators import rundir
from evaluators.store.database import count
from evaluators.store.plan import PlannedTurn
from evaluators.store.state import add_event, check_kept

_RAISED = "target_calls_raised"
_SENT = "target_asked"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request to a target."""

    id: str
    request_id: str
    input_digest: str
    status: str


def attempts_of(connection: sqlite3.Connection, stream: str, ordinal: int) -> list[Attempt]:
    """Return the attempts at one turn, oldest first."""
    rows = connection.execute(
        "SELECT id, request_id, input_digest, status FROM attempts "
        "WHERE stream = ? AND ordinal = ? ORDER BY rowid",
        (stream, ordinal),
    )
    return [Attempt(*row) for row in rows]


def attempt_count(connection: sqlite3.Connection) -> int:
    """Count the attempts of the whole run."""
    return count(connection, "SELECT count(*) FROM attempts")


def most_calls(connection: sqlite3.Connection, frozen: dict[str, Any]) -> int | None:
    """Return how many attempts the run may have, None for any number.

    That is what its manifest says, unless a person has raised it since.
    """
    row = connection.execute(
        "SELECT reference FROM events WHERE kind = ? ORDER BY sequence DESC LIMIT 1", (_RAISED,)
    ).fetchone()
    most: int | None = frozen["max_target_calls"] if row is None else int(row[0])
    return most


def raise_most_calls(connection: sqlite3.Connection, most: int) -> None:
    """Allow a run more attempts."""
    add_event(connection, _RAISED, str(most))


def begin_attempt(connection: sqlite3.Connection, turn: PlannedTurn, attempt: Attempt) -> None:
    """Store an attempt before its request is sent."""
    connection.execute(
        "INSERT INTO attempts VALUES (?, ?, ?, ?, ?, 'running', NULL, NULL, ?, NULL)",
        (
            attempt.id,
            turn.stream,
            turn.ordinal,
            attempt.request_id,
            attempt.input_digest,
            rundir.now(),
        ),
    )
    add_event(connection, _SENT, attempt.id)


def verify(connection: sqlite3.Connection) -> None:
    """Raise CorruptRunError when an attempt is gone."""
    check_kept(connection, _SENT, "attempts", "the request")


def end_attempt(
    connection: sqlite3.Connection,
    attempt_id: str,
    status: str,
    failure_kind: str | None = None,
    exception_type: str | None = None,
) -> None:
    """Store how an attempt ended."""
    connection.execute(
        "UPDATE attempts SET status = ?, failure_kind = ?, exception_type = ?, finished_at = ? "
        "WHERE id = ?",
        (status, failure_kind, exception_type, rundir.now(), attempt_id),
    )


def abandon_attempts(connection: sqlite3.Connection) -> None:
    """Mark attempts that a dead process left running: nobody knows what became of them."""
    connection.execute(
        "UPDATE attempts SET status = 'unknown_outcome', failure_kind = 'interrupted', "
        "finished_at = ? WHERE status = 'running'",
        (rundir.now(),),
    )

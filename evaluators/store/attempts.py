"""Requests to a target: stored before they are sent, never sent again by themselves."""

import sqlite3
from dataclasses import dataclass

from evaluators import rundir
from evaluators.store.database import count
from evaluators.store.plan import PlannedTurn


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

"""Where a run stands, and its diary."""

import sqlite3
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from evaluators import rundir
from evaluators.errors import CorruptRunError
from evaluators.store.database import count


@dataclass(frozen=True, slots=True)
class RunState:
    """Where a run stands; a failure keeps its kind and the exception's class, never its text."""

    status: str
    phase: str
    failure_kind: str | None = None
    exception_type: str | None = None


def add_event(connection: sqlite3.Connection, kind: str, reference: str | None = None) -> None:
    """Append to the run's diary."""
    connection.execute(
        "INSERT INTO events (kind, time, reference) VALUES (?, ?, ?)",
        (kind, rundir.now(), reference),
    )


def references(connection: sqlite3.Connection, *kinds: str) -> list[str | None]:
    """Return what the events of some kinds refer to, in order."""
    marks = ", ".join("?" * len(kinds))
    rows = connection.execute(
        f"SELECT reference FROM events WHERE kind IN ({marks}) ORDER BY sequence", kinds
    )
    return [reference for (reference,) in rows]


def check_kept(connection: sqlite3.Connection, kind: str, table: str, what: str) -> None:
    """Raise CorruptRunError when a row that an event of a kind refers to is gone.

    Rows that other rows need are kept by foreign keys; a request whose answer never came is one
    that nobody would miss, and it would be sent again.
    """
    row = connection.execute(
        f"SELECT reference FROM events WHERE kind = ? AND reference NOT IN (SELECT id FROM {table})",
        (kind,),
    ).fetchone()
    if row is not None:
        raise CorruptRunError(f"{what} {row[0]} was sent and is gone: the run was changed")


def begin(connection: sqlite3.Connection, run_id: str) -> None:
    """Store the first state of a new run."""
    connection.execute(
        "INSERT INTO run_state VALUES (1, 'running', 'capture', NULL, NULL, ?)", (rundir.now(),)
    )
    add_event(connection, "run_created", run_id)


def state(connection: sqlite3.Connection) -> RunState:
    """Return where the run stands."""
    row = connection.execute(
        "SELECT status, phase, failure_kind, exception_type FROM run_state"
    ).fetchone()
    return RunState(*row)


def set_state(connection: sqlite3.Connection, new: RunState) -> None:
    """Store where the run stands."""
    connection.execute(
        "UPDATE run_state SET status = ?, phase = ?, failure_kind = ?, exception_type = ?, "
        "updated_at = ?",
        (*asdict(new).values(), rundir.now()),
    )
    add_event(connection, new.status, new.failure_kind)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run came. Generations are planned answers of generated streams."""

    planned: int
    committed: int
    planned_generations: int
    observations: int
    attempts: dict[str, int]


def progress(connection: sqlite3.Connection, generated: Iterable[str]) -> Progress:
    """Count what is planned, committed and attempted; `generated` names the generated streams."""
    return Progress(
        planned=count(connection, "SELECT count(*) FROM inputs"),
        committed=count(connection, "SELECT count(*) FROM records"),
        planned_generations=sum(planned_answers(connection, stream) for stream in generated),
        observations=count(connection, "SELECT count(*) FROM observations"),
        attempts=dict(
            connection.execute("SELECT status, count(*) FROM attempts GROUP BY status ORDER BY 1")
        ),
    )


def planned_answers(connection: sqlite3.Connection, stream: str, begin: int = 0) -> int:
    """Count the assistant turns of a stream, from an ordinal on."""
    statement = "SELECT count(*) FROM inputs WHERE stream = ? AND ordinal >= ? AND role = ?"
    return count(connection, statement, stream, begin, "assistant")


def planned_turns(connection: sqlite3.Connection, stream: str) -> int:
    """Count the turns of a stream."""
    return count(connection, "SELECT count(*) FROM inputs WHERE stream = ?", stream)


def committed_turns(connection: sqlite3.Connection, stream: str) -> int:
    """Count the committed turns of a stream; they are its first ones (see `verify`)."""
    return count(connection, "SELECT count(*) FROM records WHERE stream = ?", stream)

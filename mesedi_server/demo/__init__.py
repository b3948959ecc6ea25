"""`mesedi-server demo`: a set of evaluator results, so that a first look is no empty page.

`results.jsonl` has what the SDK sends for one real Ragas and one real promptfoo run, and for the answers of a help
desk that we made up, a line an execution.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import resources
from typing import Any, NamedTuple

import msgspec

from mesedi_server.schemas import events as schema
from mesedi_server.store import events, executions
from mesedi_server.store.database import Connection, Database
from mesedi_server.store.projects import Project

RELEASE = "demo"
"""Release and environment of the executions that a demo makes."""

_APART = timedelta(minutes=7)


class Sent(NamedTuple):
    """What became of the set."""

    stored: int
    """Executions that are stored now."""
    known: int
    """Executions that the project had from an earlier time."""


def send(database: Database, project: Project) -> Sent:
    """Store the set as executions of a project, closed and due; those that it has already stay as they are."""
    now = datetime.now(UTC)
    results = {f"demo-{number}": result for number, result in enumerate(_results(), 1)}
    with database.transaction() as connection:
        known = executions.known(connection, project.pk, results)
    for number, (execution_id, result) in enumerate(results.items()):
        if execution_id not in known:
            started_at = now - _APART * (len(results) - number)
            with database.transaction() as connection:
                _store(connection, project, execution_id, result, started_at)
    return Sent(len(results) - len(known), len(known))


def _results() -> Iterator[dict[str, Any]]:
    text = resources.files(__package__).joinpath("results.jsonl").read_bytes()
    for line in text.splitlines():
        yield msgspec.json.decode(line)


def _store(
    connection: Connection,
    project: Project,
    execution_id: str,
    result: dict[str, Any],
    started_at: datetime,
) -> None:
    facts = {
        "execution_id": execution_id,
        "status": "started",
        "started_at": started_at,
        "release": RELEASE,
        "environment": RELEASE,
    }
    executions.post(connection, project.pk, facts)
    batch = schema.read(msgspec.json.encode(list(_events(execution_id, result, started_at))))
    rows = schema.encode_rows(batch.rows)
    events.store(connection, project.pk, rows, settle_s=0, debounce_s=0)
    end = {
        "status": "completed",
        "ended_at": started_at + timedelta(seconds=2),
        "duration_ms": 2000,
    }
    executions.patch(connection, project.pk, execution_id, end)


def _events(
    execution_id: str, result: dict[str, Any], started_at: datetime
) -> Iterator[dict[str, Any]]:
    for sequence, event in enumerate(result["events"], 1):
        yield {
            **event,
            "event_id": f"{execution_id}-{sequence}",
            "execution_id": execution_id,
            "sequence": sequence,
            "timestamp": started_at + timedelta(milliseconds=100 * sequence),
        }

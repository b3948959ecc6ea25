"""`mesedi-server demo`: a set of evaluator results, so that a first look is no empty page.

`results.jsonl` has what the SDK sends for one real Ragas and one real promptfoo run, and for the answers of a help
desk that we made up, a line an execution.
"""

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import resources
from typing import Any

import msgspec

from mesedi_server.schemas import events as schema
from mesedi_server.store import events, executions
from mesedi_server.store.database import Connection, Database
from mesedi_server.store.projects import Project

RELEASE = "demo"
"""Release and environment of the executions that a demo makes."""

_APART = timedelta(minutes=7)


def send(database: Database, project: Project) -> int:
    """Store the set as new executions of a project, closed and due; return how many there are."""
    run, now = secrets.token_hex(4), datetime.now(UTC)
    results = list(_results())
    for number, result in enumerate(results):
        with database.transaction() as connection:
            execution_id = f"demo-{run}-{number}"
            _store(
                connection, project, execution_id, result, now - _APART * (len(results) - number)
            )
    return len(results)


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

"""Judge calls and their budget: one row a call, finished once.

Only the process that holds the run's lock writes, so what judges were asked so far is counted when
it begins and added up in memory after that: no call costs more than the one before.
"""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, NamedTuple
from uuid import uuid4

from evaluators import rundir
from evaluators.canonical import digest
from evaluators.errors import CorruptRunError, EvaluationRefusedError
from evaluators.ledger import (
    ABANDONED,
    RUNNING,
    UNKNOWN_OUTCOME,
    Budget,
    Outcome,
    Spending,
    cache_key,
)
from evaluators.store.database import count
from evaluators.store.state import add_event, check_kept, references

SCHEMA = """
CREATE TABLE IF NOT EXISTS judge_budget (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    max_calls INTEGER NOT NULL CHECK (max_calls >= 0),
    max_cost_micros INTEGER CHECK (max_cost_micros >= 0),
    frozen_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS judge_budget_changes (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    max_calls INTEGER NOT NULL CHECK (max_calls >= 0),
    max_cost_micros INTEGER CHECK (max_cost_micros >= 0),
    reason TEXT NOT NULL,
    changed_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS judge_calls (
    id TEXT PRIMARY KEY,
    cache_key TEXT NOT NULL UNIQUE,
    judge TEXT NOT NULL,
    request TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('running', 'response_saved', 'unknown_outcome',
        'invalid_response', 'cost_bound_exceeded')),
    reserved_cost_micros INTEGER,
    actual_cost_micros INTEGER,
    reply TEXT,
    exception_type TEXT,
    started_at TEXT NOT NULL,
    finished_at TEXT,
    settlement TEXT,
    digest TEXT NOT NULL
)
"""

_FROZEN, _RAISED, _RESERVED = "budget_frozen", "budget_raised", "call_reserved"


class Call(NamedTuple):
    """A judge call as it is stored; `judge`, `request`, `reply` and `settlement` are JSON texts."""

    id: str
    cache_key: str
    judge: str
    request: str
    status: str
    reserved_cost_micros: int | None
    actual_cost_micros: int | None
    reply: str | None
    exception_type: str | None
    started_at: str
    finished_at: str | None
    settlement: str | None = None

    @property
    def settlement_reason(self) -> str | None:
        """What a person gave as the reason, if one settled the call."""
        return None if self.settlement is None else str(json.loads(self.settlement)["reason"])

    def to_json(self) -> dict[str, Any]:
        """Return the call as reports show it."""
        texts = ("judge", "request", "reply", "settlement")
        read = {name: getattr(self, name) and json.loads(getattr(self, name)) for name in texts}
        return {"schema_version": 1, **self._asdict(), **read}


# Budget


def frozen_budget(connection: sqlite3.Connection) -> Budget | None:
    """Return the budget that the first evaluation with one has frozen."""
    row = connection.execute("SELECT max_calls, max_cost_micros FROM judge_budget").fetchone()
    return None if row is None else Budget(*row)


def budget(connection: sqlite3.Connection) -> Budget | None:
    """Return the budget in force: the frozen one, unless a person has raised it."""
    row = connection.execute(
        "SELECT max_calls, max_cost_micros FROM judge_budget_changes ORDER BY sequence DESC LIMIT 1"
    ).fetchone()
    return frozen_budget(connection) if row is None else Budget(*row)


def _budgets(connection: sqlite3.Connection) -> Iterator[Budget]:
    for table in ("judge_budget", "judge_budget_changes"):
        rows = connection.execute(f"SELECT max_calls, max_cost_micros FROM {table} ORDER BY rowid")
        yield from (Budget(*row) for row in rows)


def _budget_digest(budget: Budget) -> str:
    return digest(asdict(budget))


def budget_changes(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return every raise of the budget, each with both values."""
    before = frozen_budget(connection)
    changes = []
    for calls, cost, reason, changed_at in connection.execute(
        "SELECT max_calls, max_cost_micros, reason, changed_at FROM judge_budget_changes "
        "ORDER BY sequence"
    ):
        after = Budget(calls, cost)
        values = {"from": asdict(before) if before else None, "to": asdict(after)}
        changes.append({**values, "reason": reason, "changed_at": changed_at})
        before = after
    return changes


def freeze_budget(connection: sqlite3.Connection, new: Budget) -> None:
    """Store the budget for good."""
    connection.execute(
        "INSERT INTO judge_budget VALUES (1, ?, ?, ?)",
        (new.max_calls, new.max_cost_micros, rundir.now()),
    )
    add_event(connection, _FROZEN, _budget_digest(new))


def raise_budget(connection: sqlite3.Connection, new: Budget, reason: str) -> None:
    """Put another budget in force; the earlier ones stay on record."""
    connection.execute(
        "INSERT INTO judge_budget_changes (max_calls, max_cost_micros, reason, changed_at) "
        "VALUES (?, ?, ?, ?)",
        (new.max_calls, new.max_cost_micros, reason, rundir.now()),
    )
    add_event(connection, _RAISED, _budget_digest(new))


def spending(connection: sqlite3.Connection) -> Spending:
    """Sum up the judge calls of the run."""
    row = connection.execute(
        """
        SELECT count(*), coalesce(sum(actual_cost_micros), 0),
               count(*) - count(actual_cost_micros),
               CASE WHEN count(*) = count(coalesce(actual_cost_micros, reserved_cost_micros))
                    THEN coalesce(sum(coalesce(actual_cost_micros, reserved_cost_micros)), 0) END,
               coalesce(sum(status = 'cost_bound_exceeded'), 0)
        FROM judge_calls
        """
    ).fetchone()
    return Spending(*row)


# Calls


def of_key(connection: sqlite3.Connection, key: str) -> Call | None:
    """Return the one call with this cache key."""
    return _one(connection, "cache_key = ?", key)


def of_id(connection: sqlite3.Connection, call_id: str) -> Call | None:
    """Return the call with this id."""
    return _one(connection, "id = ?", call_id)


def reserve(connection: sqlite3.Connection, judge: str, request: str, bound: int | None) -> Call:
    """Store a call that is about to be sent; a second one with its key is an error."""
    call = Call(
        id=str(uuid4()),
        cache_key=cache_key(request, judge),
        judge=judge,
        request=request,
        status=RUNNING,
        reserved_cost_micros=bound,
        actual_cost_micros=None,
        reply=None,
        exception_type=None,
        started_at=rundir.now(),
        finished_at=None,
    )
    marks = ", ".join("?" * (len(call) + 1))
    connection.execute(f"INSERT INTO judge_calls VALUES ({marks})", (*call, _digest(call)))
    add_event(connection, _RESERVED, call.id)
    return call


def finish(connection: sqlite3.Connection, call: Call, outcome: Outcome) -> Call:
    """Store how a running call ended.

    Raises EvaluationRefusedError for a reply that comes late, when the call has ended already.
    """
    return _end(connection, call, RUNNING, outcome, None)


def settle(connection: sqlite3.Connection, call: Call, outcome: Outcome, reason: str) -> Call:
    """Store what a person found out about a call whose outcome was unknown.

    Raises EvaluationRefusedError for any other call.
    """
    settlement = {"reason": reason, "settled_at": rundir.now(), "status": call.status}
    settled = _end(connection, call, UNKNOWN_OUTCOME, outcome, json.dumps(settlement))
    add_event(connection, "call_settled", call.id)
    return settled


def abandon(connection: sqlite3.Connection) -> None:
    """End the calls that a killed process left behind: nobody knows what became of them."""
    for call in list(_select(connection, "status = ?", RUNNING)):
        finish(connection, call, Outcome(UNKNOWN_OUTCOME, exception_type=ABANDONED))


def running(connection: sqlite3.Connection) -> int:
    """Count the calls that are under way, or were when a process was killed."""
    return count(connection, "SELECT count(*) FROM judge_calls WHERE status = ?", RUNNING)


def verify(connection: sqlite3.Connection) -> None:
    """Raise CorruptRunError when a call is gone, or a budget is not what the diary says."""
    if not count(connection, "SELECT count(*) FROM sqlite_master WHERE name = 'judge_calls'"):
        return
    check_kept(connection, _RESERVED, "judge_calls", "judge call")
    noted = references(connection, _FROZEN, _RAISED)
    stored = [_budget_digest(each) for each in _budgets(connection)]
    if len(noted) != len(stored) or any(
        note not in {None, found} for note, found in zip(noted, stored, strict=True)
    ):
        raise CorruptRunError("the judge budget is not the one that was set: the run was changed")


def check_named(connection: sqlite3.Connection, evaluation: int) -> None:
    """Raise CorruptRunError when a result names a call that is not there."""
    row = connection.execute(
        """
        SELECT call FROM (SELECT json_extract(content, '$.call_id') AS call
            FROM evaluation_results WHERE evaluation = ?)
        WHERE call NOTNULL AND call NOT IN (SELECT id FROM judge_calls) LIMIT 1
        """,
        (evaluation,),
    ).fetchone()
    if row is not None:
        raise CorruptRunError(f"judge call {row[0]} is gone, though a result comes from it")


def _end(
    connection: sqlite3.Connection,
    call: Call,
    expected: str,
    outcome: Outcome,
    settlement: str | None,
) -> Call:
    ended = call._replace(**asdict(outcome), finished_at=rundir.now(), settlement=settlement)
    changed = connection.execute(
        "UPDATE judge_calls SET status = ?, actual_cost_micros = ?, reply = ?, exception_type = ?, "
        "finished_at = ?, settlement = ?, digest = ? WHERE id = ? AND status = ?",
        (
            ended.status,
            ended.actual_cost_micros,
            ended.reply,
            ended.exception_type,
            ended.finished_at,
            ended.settlement,
            _digest(ended),
            ended.id,
            expected,
        ),
    )
    if changed.rowcount != 1:
        raise EvaluationRefusedError(f"judge call {call.id} is not {expected} any more")
    return ended


def _one(connection: sqlite3.Connection, condition: str, value: str) -> Call | None:
    return next(_select(connection, condition, value), None)


def _select(connection: sqlite3.Connection, condition: str, value: str) -> Iterator[Call]:
    columns = ", ".join(Call._fields)
    for *row, stored in connection.execute(
        f"SELECT {columns}, digest FROM judge_calls WHERE {condition}", (value,)
    ):
        call = Call._make(row)
        if _digest(call) != stored or cache_key(call.request, call.judge) != call.cache_key:
            raise CorruptRunError(f"judge call {call.id} does not match its digest")
        yield call


def _digest(call: Call) -> str:
    return digest(call._replace(request=""))  # the key covers the request

"""A pipeline under test: what it sends, what workers make of it, what a person then sees."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any

from sqlalchemy import text

from mesedi_server import examination
from mesedi_server.schemas import events as schema
from mesedi_server.store import (
    due_work,
    events,
    executions,
    failure_groups,
    projects,
    rollups,
    thresholds,
)
from mesedi_server.store.database import Connection, Database
from mesedi_server.store.events import Stored
from mesedi_server.store.failure_groups import (
    STATES,
    FailureGroup,
    GroupFilter,
    HistoryLine,
    Member,
    StateChange,
)
from mesedi_server.store.paging import Paging
from mesedi_server.store.projects import Project
from tests.factories import make_event

FAITHFULNESS = "grounding_failure:ragas:faithfulness"
"""Signature of the pair that `make_score` scores."""

_numbers = count(1)

_WRONG_NUMBERS = """
SELECT g.signature, g.occurrence_count, g.last_seen_at, count(o.execution_pk), max(o.occurred_at)
FROM failure_groups g LEFT JOIN occurrences o ON o.group_pk = g.pk
WHERE g.project_pk = ANY (%(projects)s)
GROUP BY g.pk
HAVING g.occurrence_count <> count(o.execution_pk) OR g.last_seen_at <> max(o.occurred_at)
    OR g.first_seen_at > min(o.occurred_at)
"""

# On the way to another zone, an execution is counted in the one that it has been moved to.
_ZONE = "CASE WHEN {row}.execution_pk <= p.moved_to THEN p.next_zone ELSE p.counted_zone END"

_RECOUNTED_DAYS = f"""
SELECT o.group_pk, (o.occurred_at AT TIME ZONE {_ZONE.format(row="o")})::date AS day,
    coalesce(left(o.release, 256), '') AS release,
    coalesce(left(o.environment, 256), '') AS environment, count(*)::int AS occurrences
FROM occurrences o JOIN projects p ON p.pk = o.project_pk
WHERE o.project_pk = ANY (%(projects)s) GROUP BY 1, 2, 3, 4
"""

# Both ways: what is counted and is not there, and what is there and is not counted.
_WRONG_COUNTS = f"""
WITH days AS ({_RECOUNTED_DAYS}), weeks AS (
    SELECT group_pk, date_trunc('week', day)::date AS week, false AS is_total, release, environment,
        sum(occurrences)::int AS occurrences FROM days GROUP BY 1, 2, 4, 5
    UNION ALL
    SELECT group_pk, date_trunc('week', day)::date, true, '', '', sum(occurrences)::int FROM days GROUP BY 1, 2
), periods AS (
    SELECT group_pk, date '2024-01-08' + 28 * floor((day - date '2024-01-08') / 28.0)::int AS period, any_release,
        any_environment, CASE WHEN any_release THEN '' ELSE release END AS release,
        CASE WHEN any_environment THEN '' ELSE environment END AS environment, sum(occurrences)::int AS occurrences
    FROM days,
        (VALUES (true, true), (true, false), (false, true), (false, false)) AS kind (any_release, any_environment)
    GROUP BY 1, 2, 3, 4, 5, 6
), pairs AS (
    SELECT r.project_pk, r.evaluator_id, r.metric_type,
        (x.received_at AT TIME ZONE {_ZONE.format(row="r")})::date AS day,
        count(*)::int AS interactions
    FROM score_rollups r JOIN executions x ON x.pk = r.execution_pk JOIN projects p ON p.pk = r.project_pk
    WHERE r.project_pk = ANY (%(projects)s)
    GROUP BY 1, 2, 3, 4
), counted_days AS (
    SELECT group_pk, day, release, environment, occurrences FROM group_days
    WHERE occurrences <> 0 AND project_pk = ANY (%(projects)s)
), counted_weeks AS (
    SELECT group_pk, week, is_total, release, environment, occurrences FROM group_weeks
    WHERE occurrences <> 0 AND project_pk = ANY (%(projects)s)
), counted_periods AS (
    SELECT group_pk, period, any_release, any_environment, release, environment, occurrences FROM group_periods
    WHERE occurrences <> 0 AND project_pk = ANY (%(projects)s)
), counted_pairs AS (
    SELECT project_pk, evaluator_id, metric_type, day, interactions FROM pair_days
    WHERE interactions <> 0 AND project_pk = ANY (%(projects)s)
)
SELECT 'group', w::text FROM ((TABLE days EXCEPT TABLE counted_days) UNION (TABLE counted_days EXCEPT TABLE days)) w
UNION ALL
SELECT 'week', w::text FROM ((TABLE weeks EXCEPT TABLE counted_weeks) UNION (TABLE counted_weeks EXCEPT TABLE weeks)) w
UNION ALL
SELECT 'period', w::text
FROM ((TABLE periods EXCEPT TABLE counted_periods) UNION (TABLE counted_periods EXCEPT TABLE periods)) w
UNION ALL
SELECT 'pair', w::text FROM ((TABLE pairs EXCEPT TABLE counted_pairs) UNION (TABLE counted_pairs EXCEPT TABLE pairs)) w
"""


@dataclass(frozen=True)
class Pipeline:
    """One project. Workers examine all projects of the database, as they do."""

    database: Database
    project: Project

    def send(self, *sent: dict, settle_s: float = 60.0, debounce_s: float = 2.0) -> Stored:
        """Send a batch, through the schema as a request would."""
        batch = schema.read(json.dumps(sent).encode())
        assert batch.refusals == []
        with self.database.statement() as connection:
            return events.store(
                connection,
                self.project.pk,
                schema.encode_rows(batch.rows),
                settle_s=settle_s,
                debounce_s=debounce_s,
            )

    def post(self, execution_id: str = "exec-1", status: str = "started", **facts) -> None:
        with self.database.statement() as connection:
            facts |= {"execution_id": execution_id, "status": status}
            executions.post(connection, self.project.pk, facts)

    def close(self, execution_id: str = "exec-1", status: str = "completed", **facts) -> None:
        with self.database.statement() as connection:
            executions.patch(connection, self.project.pk, execution_id, facts | {"status": status})

    def run(self, execution_id: str, *sent: dict, **facts) -> None:
        """A run as it should be: started, its events sent, closed, examined."""
        self.post(execution_id, **facts)
        if sent:
            self.send(*({**event, "execution_id": execution_id} for event in sent))
        self.close(execution_id)
        self.examine()

    def examine(self, settle_s: float = 60.0) -> int:
        """Examine until nothing is due; return how many executions that were."""
        examined = 0
        while done := examination.examine_due(self.database, settle_s=settle_s):
            examined += done
        return examined

    def redetect(self) -> int:
        """Make every examined execution due again; return how many that were."""
        since, last, marked = datetime(2000, 1, 1, tzinfo=UTC), "", 0
        while last is not None:
            with self.database.transaction() as connection:
                count, last = due_work.make_due(
                    connection, self.project.pk, since=since, until=None, after=last, limit=50
                )
            marked += count
        return marked

    def let_pass(self, seconds: float) -> None:
        """Make everything that has happened so much older."""
        ago = f"- {seconds} * interval '1 second'"
        with self.connection() as connection:
            for statement in (
                f"""UPDATE executions SET last_event_at = last_event_at {ago},
                    examined_at = examined_at {ago}, detect_due_at = detect_due_at {ago}
                    WHERE project_pk = :project""",
                f"UPDATE events SET timestamp = timestamp {ago} WHERE project_pk = :project",
                f"""UPDATE failure_groups SET ignored_until = ignored_until {ago}
                    WHERE project_pk = :project""",
            ):
                connection.execute(text(statement), {"project": self.project.pk})

    def tune(self, key: str, value: Any, detector: str = "grounding_failure") -> int:
        """Set a threshold; return the version."""
        with self.connection() as connection:
            return thresholds.change(
                connection, self.project.pk, detector, key, value, changed_by="us", reason=None
            )

    def change(self, signature: str, state: failure_groups.State, **how) -> FailureGroup:
        group = self.group(signature)
        change = StateChange(state=state, actor="us", **how)
        with self.connection() as connection:
            return failure_groups.change_state(connection, self.project.pk, group.group_id, change)

    def execution(self, execution_id: str = "exec-1") -> executions.Execution:
        with self.connection() as connection:
            return executions.get(connection, self.project.pk, execution_id)

    def rollups(self, execution_id: str = "exec-1") -> list[rollups.RollupRow]:
        pk = self.execution(execution_id).pk
        with self.connection() as connection:
            return rollups.of_execution(connection, pk)

    def listed(self, **wanted) -> list[str]:
        """Signatures of the groups that a list shows."""
        return sorted(group.signature for group in self._page(GroupFilter(**wanted)))

    def groups(self) -> list[FailureGroup]:
        """All groups, whatever their state, empty ones included."""
        return self._page(GroupFilter(states=STATES, is_empty_shown=True))

    def group(self, signature: str = FAITHFULNESS) -> FailureGroup:
        [found] = [group for group in self.groups() if group.signature == signature]
        return found

    def members(self, signature: str = FAITHFULNESS) -> dict[str, Member]:
        pk = self.group(signature).pk
        with self.connection() as connection:
            page = failure_groups.members_page(connection, pk, Paging(limit=10_000))
        return {member.execution_id: member for member in page.items}

    def history(self, signature: str = FAITHFULNESS) -> list[HistoryLine]:
        """What happened to a group, oldest first."""
        pk = self.group(signature).pk
        with self.connection() as connection:
            return failure_groups.history(connection, pk)[::-1]

    def kinds(self, signature: str = FAITHFULNESS) -> list[str]:
        return [line.kind for line in self.history(signature)]

    def _page(self, wanted: GroupFilter) -> list[FailureGroup]:
        with self.connection() as connection:
            page = failure_groups.list_page(
                connection, self.project.pk, wanted, Paging(limit=10_000)
            )
        return page.items

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        with self.database.transaction() as connection:
            yield connection


def make_pipeline(database: Database) -> Pipeline:
    with database.transaction() as connection:
        project = projects.create(connection, f"pipeline {next(_numbers)}")
    return Pipeline(database, project)


def wrong_numbers(database: Database, project_pk: int | None = None) -> list[tuple]:
    """The groups of one project, or of all, whose numbers are not those of a recount, and the wrong counts by day."""
    with database.transaction() as connection:
        wanted = [project_pk] if project_pk else [p.pk for p in projects.everyone(connection)]
        rows = connection.exec_driver_sql(_WRONG_NUMBERS, {"projects": wanted}).all()
        rows += connection.exec_driver_sql(_WRONG_COUNTS, {"projects": wanted}).all()
        return [tuple(row) for row in rows]


def make_check(name: str = "schema", **payload) -> dict:
    """A validator_result; a failure unless `passed` says otherwise."""
    return make_event(
        event_type="validator_result", payload={"name": name, "passed": False} | payload
    )


def make_decision(response_kind: str = "approved", execution_id: str = "exec-1", **payload) -> dict:
    """A human_intervention of now, or of its `decided_at`."""
    return make_event(
        execution_id,
        "human_intervention",
        sequence=0,
        timestamp=None,
        payload={"request_id": "hitl-1", "response_kind": response_kind, **payload},
    )

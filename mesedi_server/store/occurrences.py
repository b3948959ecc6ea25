"""Occurrences: which executions belong to which failure group, and the groups' numbers with them.

`replace` and `add` are the ways in. Both count the groups in the same transaction, so a group's numbers always equal a
recount of its occurrences, and doing it twice changes nothing.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from msgspec import Struct

from detectors import Finding, group_id
from mesedi_server.store.database import Connection
from mesedi_server.store.json_text import json_text


class OccurrenceRow(Struct):
    """One finding of one execution, and the group that it belongs to."""

    project_pk: int
    execution_pk: int
    group_id: str
    failure_class: str
    signature: str
    evaluator_id: str
    metric_type: str
    severity: str
    rule: str
    evidence: dict[str, Any]
    threshold_version: int
    occurred_at: datetime
    release: str | None
    environment: str | None

    @classmethod
    def of(
        cls,
        finding: Finding,
        project_id: str,
        *,
        project_pk: int,
        execution_pk: int,
        threshold_version: int,
        occurred_at: datetime,
        release: str | None,
        environment: str | None,
    ) -> "OccurrenceRow":
        """Place a finding in its group."""
        return cls(
            project_pk=project_pk,
            execution_pk=execution_pk,
            group_id=group_id(
                project_id, finding.failure_class, finding.signature, finding.evaluator_id
            ),
            failure_class=finding.failure_class,
            signature=finding.signature,
            evaluator_id=finding.evaluator_id,
            metric_type=finding.metric_type,
            severity=finding.severity,
            rule=finding.rule,
            evidence=finding.evidence,
            threshold_version=threshold_version,
            occurred_at=occurred_at,
            release=release,
            environment=environment,
        )


_FOUND = """found AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (
        project_pk int, execution_pk bigint, group_id text, failure_class text, signature text, evaluator_id text,
        metric_type text, severity text, rule text, evidence jsonb, threshold_version int,
        occurred_at timestamptz, release text, environment text)
)"""

_EXECUTIONS = "(SELECT jsonb_array_elements_text(%(executions)s::jsonb)::bigint)"

# Groups that are new get their one first-seen mark from whoever made the row.
_MAKE_GROUPS = f"""
WITH {_FOUND}, made AS (
    INSERT INTO failure_groups (project_pk, group_id, failure_class, signature, evaluator_id, metric_type, severity,
        first_seen_at, last_seen_at)
    SELECT DISTINCT ON (project_pk, group_id) project_pk, group_id, failure_class, signature, evaluator_id,
        metric_type, severity, occurred_at, occurred_at
    FROM found ORDER BY project_pk, group_id, occurred_at
    ON CONFLICT (project_pk, group_id) DO NOTHING
    RETURNING pk
)
INSERT INTO group_history (group_pk, kind) SELECT pk, 'first_seen' FROM made
"""

# Before the numbers change, so that two workers change one group after the other; by key, so that they can't
# wait for each other in a circle. Groups of other classes stay free, for the same reason.
_LOCK_GROUPS = f"""
WITH {_FOUND}
SELECT pk FROM failure_groups g
WHERE g.failure_class = ANY (%(classes)s::text[])
    AND g.pk IN (SELECT group_pk FROM occurrences WHERE execution_pk IN {_EXECUTIONS}
        UNION SELECT m.pk FROM failure_groups m JOIN found f USING (project_pk, group_id))
ORDER BY pk FOR UPDATE
"""

# Of the earliest new member that has one: it is what brought the failure back.
_FIRST_RELEASE = "(array_agg(p.release ORDER BY p.occurred_at, p.execution_pk) FILTER (WHERE p.release IS NOT NULL))[1]"

_PLACED = """placed AS (
    SELECT g.pk AS group_pk, f.* FROM found f JOIN failure_groups g USING (project_pk, group_id)
)"""
_PLACED_MEMBERS = """(group_pk, execution_pk, project_pk, occurred_at, rule, severity, evidence,
        threshold_version, release, environment)
    SELECT group_pk, execution_pk, project_pk, occurred_at, rule, severity, evidence, threshold_version, release,
        environment
    FROM placed ORDER BY group_pk, execution_pk"""

# One statement sees the table as it was: `before` tells the members that are new from those that stay.
_REPLACE = f"""
WITH {_FOUND}, {_PLACED}, before AS MATERIALIZED (
    SELECT o.group_pk, o.execution_pk FROM occurrences o JOIN failure_groups g ON g.pk = o.group_pk
    WHERE o.execution_pk IN {_EXECUTIONS} AND g.failure_class = ANY (%(classes)s::text[])
), gone AS (
    DELETE FROM occurrences o USING before b
    WHERE (o.group_pk, o.execution_pk) = (b.group_pk, b.execution_pk)
        AND NOT EXISTS (SELECT FROM placed p WHERE (p.group_pk, p.execution_pk) = (b.group_pk, b.execution_pk))
    RETURNING o.group_pk
), kept AS (
    INSERT INTO occurrences AS o {_PLACED_MEMBERS}
    ON CONFLICT (group_pk, execution_pk) DO UPDATE SET rule = excluded.rule, severity = excluded.severity,
        evidence = excluded.evidence, threshold_version = excluded.threshold_version, release = excluded.release,
        environment = excluded.environment
), added AS (
    SELECT p.group_pk, count(*) AS members, min(p.occurred_at) AS first_at, max(p.occurred_at) AS last_at,
        {_FIRST_RELEASE} AS release
    FROM placed p LEFT JOIN before b USING (group_pk, execution_pk)
    WHERE b.group_pk IS NULL GROUP BY p.group_pk
), removed AS (
    SELECT group_pk, count(*) AS members FROM gone GROUP BY group_pk
)
SELECT coalesce(jsonb_agg(jsonb_build_object('group_pk', g.pk, 'added', coalesce(a.members, 0),
    'removed', coalesce(r.members, 0), 'first_at', a.first_at, 'last_at', a.last_at, 'release', a.release,
    'reopens', a.members IS NOT NULL)), '[]')::text
FROM (SELECT group_pk AS pk FROM added UNION SELECT group_pk FROM removed
    UNION SELECT group_pk FROM placed WHERE failure_class = 'validator_failures') g
LEFT JOIN added a ON a.group_pk = g.pk LEFT JOIN removed r ON r.group_pk = g.pk
"""

_ADD = f"""
WITH {_FOUND}, {_PLACED}, fresh AS (
    INSERT INTO occurrences {_PLACED_MEMBERS}
    ON CONFLICT (group_pk, execution_pk) DO NOTHING
    RETURNING group_pk, execution_pk
), added AS (
    SELECT p.group_pk, count(f.group_pk) AS members, {_FIRST_RELEASE} AS release,
        min(p.occurred_at) FILTER (WHERE f.group_pk IS NOT NULL) AS first_at,
        max(p.occurred_at) FILTER (WHERE f.group_pk IS NOT NULL) AS last_at,
        bool_or(p.group_id = ANY (%(opening)s::text[])) AS reopens
    FROM placed p LEFT JOIN fresh f USING (group_pk, execution_pk) GROUP BY p.group_pk
)
SELECT coalesce(jsonb_agg(jsonb_build_object('group_pk', group_pk, 'added', members, 'removed', 0,
    'first_at', first_at, 'last_at', last_at, 'release', release, 'reopens', reopens)), '[]')::text
FROM added
"""

_CHANGES = """change AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(changes)s::jsonb) AS c (group_pk bigint, added int, removed int,
        first_at timestamptz, last_at timestamptz, release text, reopens boolean)
)"""

# A new member of a resolved group is a regression; an ignored group wakes up when so many new members have come,
# however many have left meanwhile.
_COUNT = f"""
WITH {_CHANGES}, counted AS (
    SELECT g.pk, c.*, g.state, g.occurrence_count + c.added - c.removed AS occurrence_count,
        c.reopens AND g.state = 'resolved' AS regresses,
        c.added > 0 AND g.state = 'ignored' AND g.occurrence_count + c.added >= g.ignored_until_count AS wakes
    FROM change c JOIN failure_groups g ON g.pk = c.group_pk
), updated AS (
    UPDATE failure_groups g SET
        occurrence_count = c.occurrence_count,
        first_seen_at = least(g.first_seen_at, c.first_at),
        last_seen_at = CASE
            WHEN c.removed > 0 OR g.occurrence_count = 0 THEN
                coalesce((SELECT max(o.occurred_at) FROM occurrences o WHERE o.group_pk = g.pk), g.last_seen_at)
            ELSE greatest(g.last_seen_at, c.last_at) END,
        severity = CASE WHEN g.failure_class <> 'validator_failures' THEN g.severity
            WHEN EXISTS (SELECT FROM occurrences o WHERE o.group_pk = g.pk AND o.rule = 'failed_check'
                AND o.severity = 'critical') THEN 'critical'
            WHEN EXISTS (SELECT FROM occurrences o WHERE o.group_pk = g.pk AND o.rule = 'failed_check'
                AND o.severity = 'error') THEN 'error'
            WHEN c.occurrence_count > 0 THEN 'warning'
            ELSE g.severity END,
        state = CASE WHEN c.regresses OR c.wakes THEN 'open' ELSE g.state END,
        regressed_at = CASE WHEN c.regresses THEN now() ELSE g.regressed_at END,
        regressed_release = CASE WHEN c.regresses THEN c.release ELSE g.regressed_release END,
        ignored_until = CASE WHEN c.wakes THEN NULL ELSE g.ignored_until END,
        ignored_until_count = CASE WHEN c.wakes THEN NULL ELSE g.ignored_until_count - c.removed END
    FROM counted c WHERE g.pk = c.pk
)
INSERT INTO group_history (group_pk, kind, release)
SELECT pk, CASE WHEN regresses THEN 'regressed' ELSE 'ignore_ended' END, release
FROM counted WHERE regresses OR wakes
"""


def replace(
    connection: Connection,
    execution_pks: Collection[int],
    rows: list[OccurrenceRow],
    classes: Collection[str],
) -> None:
    """Make `rows` all the occurrences that these executions have, of these failure classes.

    New members are added, those that still fail keep their occurrence with the evidence refreshed, the others are taken
    back; the groups are made, counted and reopened with it.
    """
    parameters = {
        "executions": json_text(list(execution_pks)),
        "classes": _text_array(classes),
    }
    _write(connection, _REPLACE, rows, parameters)


def add(connection: Connection, rows: list[OccurrenceRow], *, opening: Collection[str]) -> None:
    """Add members that no examination of a single execution decides; those that are there already stay as they are.

    Args:
        connection: an open transaction.
        rows: of failure classes that `replace` is never called with.
        opening: ids of the groups that their new members reopen; the others are counted quietly.
    """
    parameters = {
        "executions": "[]",
        "classes": _text_array({row.failure_class for row in rows}),
        "opening": _text_array(opening),
    }
    _write(connection, _ADD, rows, parameters)


def _write(
    connection: Connection, statement: str, rows: list[OccurrenceRow], others: dict[str, str]
) -> None:
    """Write members by a statement that tells what changes in which group, and count it there."""
    parameters = {"rows": json_text(rows), **others}
    if rows:
        connection.exec_driver_sql(_MAKE_GROUPS, parameters)
    connection.exec_driver_sql(_LOCK_GROUPS, parameters)
    changes = connection.exec_driver_sql(statement, parameters).scalar_one()
    connection.exec_driver_sql(_COUNT, {"changes": changes})


def _text_array(names: Collection[str]) -> str:
    # Only names of our own making, without commas, braces or quotes, come here.
    return "{" + ",".join(names) + "}"

"""Fill a database with a large project: executions of 90 days, most of their failures in a few of many groups.

    python -m bench.fill --data DIR [--events 10000000] [--occurrences 1000000] [--groups 5000]

The rows are what an examination leaves, written in SQL by the million. `bench.pages --data DIR` measures pages there.
An execution has five events: an answer, and two scores of each of two pairs.
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.types.json import Jsonb
from sqlalchemy import make_url

from detectors import grounding_failure, group_id
from mesedi_server import migrating
from mesedi_server.embedded import EmbeddedServers
from mesedi_server.store import projects
from mesedi_server.store.database import Database

PROJECT = "large"
EVENTS_AN_EXECUTION = 5
DAYS = 90

_COUNTED = ("occurrences", "score_rollups", "executions")

# A cube crowds the executions into the first pairs; failures reach every pair once before that.
_PLAN = """
CREATE UNLOGGED TABLE plan AS
SELECT n, rank IS NOT NULL AS fails,
    CASE WHEN rank < %(groups)s THEN rank ELSE floor(%(groups)s * random() ^ 3)::int END AS first_pair,
    floor(%(groups)s * random() ^ 3)::int AS second_pair,
    CASE WHEN rank IS NOT NULL THEN random() * 0.5 ELSE 0.5 + random() * 0.5 END AS score,
    now() - %(days)s * interval '1 day' * (1 - n / %(executions)s::float8) AS at,
    'r' || n * 12 / %(executions)s AS release,
    (ARRAY['production', 'production', 'staging'])[1 + n %% 3] AS environment
FROM (SELECT n, CASE WHEN n * %(failing)s / %(executions)s > (n - 1) * %(failing)s / %(executions)s
        THEN (n * %(failing)s / %(executions)s - 1)::int END AS rank
    FROM generate_series(1, %(executions)s::bigint) AS n) AS numbered
"""

_EXECUTIONS = """
INSERT INTO executions (project_pk, execution_id, status, received_at, started_at, ended_at, duration_ms, posted_at,
    patched_at, closed_at, release, environment, last_event_at, examined_at)
SELECT %(project)s, 'run-' || lpad(n::text, 9, '0'), 'completed', at, at, at + interval '2 s', 2000, at,
    at, at, release, environment, at, at
FROM plan ORDER BY n
"""

_PLACES = """
CREATE UNLOGGED TABLE places AS
SELECT p.*, x.pk AS execution_pk FROM plan p
JOIN executions x ON x.project_pk = %(project)s AND x.execution_id = 'run-' || lpad(n::text, 9, '0')
"""

_PAIR = (
    "'judge-' || lpad(({pair} / 5)::text, 4, '0') AS evaluator, 'metric-' || {pair} %% 5 AS metric"
)

_EVENTS = f"""
INSERT INTO events (project_pk, event_id, execution_pk, event_type, sequence, timestamp, received_at, payload,
    evaluator_id, metric_type, score, passed, higher_is_better)
SELECT %(project)s, 'evt-' || lpad(n::text, 9, '0') || '-' || k, execution_pk,
    CASE WHEN k = 0 THEN 'answer' ELSE 'eval_score' END, k, at, at,
    CASE WHEN k = 0 THEN jsonb_build_object('answer_id', 'ans-' || n,
        'question', 'How long can I return order ' || n || '?',
        'answer', 'You can return it within ' || n %% 90 || ' days, and shipping is free.',
        'context', jsonb_build_object('excerpts',
            jsonb_build_array('Returns are possible within 30 days.', 'Shipping costs 5 EUR.')))
    ELSE jsonb_build_object('evaluator_id', evaluator, 'metric_type', metric, 'score', value, 'higher_is_better', true,
        'answer_id', 'ans-' || n, 'reason', 'No passage supports the period that the answer names.') END,
    evaluator, metric, value, NULL, CASE WHEN k > 0 THEN true END
FROM places CROSS JOIN generate_series(0, 4) AS k CROSS JOIN LATERAL (
    SELECT {_PAIR.format(pair="first_pair")}, score AS value WHERE k IN (1, 2)
    UNION ALL SELECT {_PAIR.format(pair="second_pair")}, 0.9 WHERE k IN (3, 4)
    UNION ALL SELECT NULL, NULL, NULL WHERE k = 0) AS content
WHERE n > %(after)s AND n <= %(until)s
ORDER BY n, k
"""

_ROLLUPS = f"""
INSERT INTO score_rollups (execution_pk, project_pk, evaluator_id, metric_type, events, measured, mean, mean_exact,
    lowest, highest, unmeasured, failed, higher_is_better, raw_out_of_range)
SELECT execution_pk, %(project)s, evaluator, metric, 2, 2, value, value::numeric::text || '/1', value, value, 0, 0,
    true, false
FROM places CROSS JOIN LATERAL (SELECT {_PAIR.format(pair="first_pair")}, score AS value
    UNION ALL SELECT {_PAIR.format(pair="second_pair")}, 0.9) AS content
WHERE n > %(after)s AND n <= %(until)s
ORDER BY execution_pk
ON CONFLICT DO NOTHING
"""

_GROUPS = """
INSERT INTO failure_groups (project_pk, group_id, failure_class, signature, evaluator_id, metric_type, severity,
    first_seen_at, last_seen_at, occurrence_count)
SELECT %(project)s, group_id, %(failure_class)s, signature, evaluator_id, metric_type, 'critical',
    first_at, last_at, members
FROM jsonb_to_recordset(%(groups)s) AS g (pair int, group_id text, signature text, evaluator_id text, metric_type text)
JOIN (SELECT first_pair, min(at) AS first_at, max(at) AS last_at, count(*) AS members FROM places WHERE fails
    GROUP BY first_pair) AS counted ON first_pair = pair
ORDER BY pair
"""

_HISTORY = """
INSERT INTO group_history (group_pk, kind, at)
SELECT pk, 'first_seen', first_seen_at FROM failure_groups WHERE project_pk = %(project)s
"""

_OCCURRENCES = f"""
INSERT INTO occurrences (group_pk, execution_pk, project_pk, occurred_at, rule, severity, evidence, release,
    environment)
SELECT g.pk, execution_pk, %(project)s, at, 'mean_below_floor', 'critical', jsonb_build_object(
    'rule', 'mean_below_floor', 'mean', score, 'measured', 2, 'scores', 2, 'unmeasured', 0, 'floor', 0.5,
    'floor_source', 'default', 'higher_is_better', true, 'raw_out_of_range', false,
    'reasons', jsonb_build_array('No passage supports the period that the answer names.')), release, environment
FROM places CROSS JOIN LATERAL (SELECT {_PAIR.format(pair="first_pair")}) AS content
JOIN failure_groups g ON g.project_pk = %(project)s AND g.evaluator_id = evaluator AND g.metric_type = metric
WHERE fails AND n > %(after)s AND n <= %(until)s
ORDER BY n
"""

# What the answers of `_EVENTS` come to: the passages name 30 days only.
_ASSESSMENTS = """
INSERT INTO assessments (project_pk, execution_pk, answer_id, answer_digest, evaluator, revision, outcome, content,
    quantities, unmatched, assessed_at)
SELECT %(project)s, execution_pk, 'ans-' || n, sha256(('ans-' || n)::bytea), 'grounding', 'bench',
    CASE WHEN is_right THEN 'met' ELSE 'violated' END,
    jsonb_build_object('citations', '[]'::jsonb, 'quantities', jsonb_build_array(jsonb_build_object(
        'quote', n %% 90 || ' days', 'normalized', 'time:eq:' || n %% 90 * 86400,
        'status', CASE WHEN is_right THEN 'source' ELSE 'unmatched' END,
        'evidence', CASE WHEN is_right THEN jsonb_build_object('source_id', 'passage:1', 'quote', '30 days') END))),
    1, CASE WHEN is_right THEN 0 ELSE 1 END, at
FROM places CROSS JOIN LATERAL (SELECT n %% 90 = 30 AS is_right) AS found
WHERE fails AND first_pair < %(assessed_pairs)s AND n > %(after)s AND n <= %(until)s
ORDER BY n
"""

_LABELS = """
INSERT INTO answer_labels (project_pk, execution_pk, answer_id, answer_digest, label_id, label, actor, at)
SELECT %(project)s, execution_pk, 'ans-' || n,
    sha256(convert_to('You can return it within ' || n %% 90 || ' days, and shipping is free.', 'UTF8')), 'label-' || n,
    (ARRAY['correct', 'wrong', 'evaluator_wrong'])[1 + n %% 3], 'bench', at
FROM places WHERE fails AND first_pair < %(assessed_pairs)s AND n %% 10 = 0 AND n > %(after)s AND n <= %(until)s
ORDER BY n
"""

ASSESSED_PAIRS = 500
"""Pairs whose failing answers are assessed, those with the most executions; people have labelled each tenth of them."""

_STEP = 500_000
"""Executions that one statement fills in."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the database")
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--occurrences", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=5_000)
    arguments = parser.parse_args()
    with EmbeddedServers(arguments.data) as addresses:
        migrating.upgrade(addresses.database_url)
        fill(addresses.database_url, arguments.events, arguments.occurrences, arguments.groups)


def fill(database_url: str, events: int, occurrences: int, groups: int) -> None:
    """Fill a migrated database that has no project of this name yet.

    Args:
        database_url: whose owner the user is.
        events, occurrences, groups: how many of each; an execution has five events and fails once at most.
    """
    project = _make_project(database_url)
    executions = events // EVENTS_AN_EXECUTION
    parameters = {
        "project": project.pk,
        "executions": executions,
        "failing": min(occurrences, executions),
        "groups": groups,
        "days": DAYS,
        "assessed_pairs": ASSESSED_PAIRS,
    }
    url = make_url(database_url).set(drivername="postgresql")
    with psycopg.connect(url.render_as_string(hide_password=False), autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off")
        connection.execute("SELECT setseed(0.5)")
        for title, statement in (("plan", _PLAN), ("executions", _EXECUTIONS), ("places", _PLACES)):
            _run(connection, title, statement, parameters)
        with _triggers_off(connection):
            _fill_steps(connection, "events", _EVENTS, parameters)
            _fill_steps(connection, "rollups", _ROLLUPS, parameters)
            named = {"groups": Jsonb(_groups(project.project_id, groups))}
            failure_class = {"failure_class": grounding_failure.NAME}
            _run(connection, "groups", _GROUPS, {**parameters, **named, **failure_class})
            _run(connection, "history", _HISTORY, parameters)
            _fill_steps(connection, "occurrences", _OCCURRENCES, parameters)
        _fill_steps(connection, "assessments", _ASSESSMENTS, parameters)
        _fill_steps(connection, "labels", _LABELS, parameters)
        _run(connection, "counts", "SELECT count_project_by_day(%(project)s)", parameters)
        connection.execute("DROP TABLE plan, places")
        _run(connection, "vacuum", "VACUUM ANALYZE", {})


def _make_project(database_url: str) -> projects.Project:
    database = Database(database_url, connections=1)
    try:
        with database.transaction() as connection:
            return projects.create(connection, PROJECT)
    finally:
        database.close()


def _groups(project_id: str, groups: int) -> list[dict[str, object]]:
    return [_group(project_id, pair) for pair in range(groups)]


def _group(project_id: str, pair: int) -> dict[str, object]:
    evaluator, metric = f"judge-{pair // 5:04}", f"metric-{pair % 5}"
    signature = f"{grounding_failure.NAME}:{evaluator}:{metric}"
    return {
        "pair": pair,
        "group_id": group_id(project_id, grounding_failure.NAME, signature, evaluator),
        "signature": signature,
        "evaluator_id": evaluator,
        "metric_type": metric,
    }


@contextmanager
def _triggers_off(connection: psycopg.Connection) -> Iterator[None]:
    """Count everything once at the end instead of with each statement."""
    for table in _COUNTED:
        connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    try:
        yield
    finally:
        for table in _COUNTED:
            connection.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")


def _fill_steps(
    connection: psycopg.Connection, title: str, statement: str, parameters: dict[str, object]
) -> None:
    for after in range(0, int(str(parameters["executions"])), _STEP):
        _run(connection, title, statement, {**parameters, "after": after, "until": after + _STEP})


def _run(
    connection: psycopg.Connection, title: str, statement: str, parameters: dict[str, object]
) -> None:
    start = time.perf_counter()
    rows = connection.execute(statement, parameters or None).rowcount
    print(f"{title:12} {rows:>12,} rows {time.perf_counter() - start:8.1f} s", flush=True)


if __name__ == "__main__":
    main()

"""Score rollups: a row an execution and pair, written by the examination."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any

from msgspec import Struct

from detectors import MAX_FINDINGS, PairSummary, Thresholds
from detectors.exact import nearest_float
from mesedi_server.store.database import Connection
from mesedi_server.store.json_text import json_text

_COLUMNS = """execution_pk, project_pk, evaluator_id, metric_type, events, measured, mean, mean_exact, lowest, highest,
    unmeasured, failed, failed_rank, higher_is_better, raw_out_of_range"""

_REPLACE = f"""
WITH fresh AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (
        execution_pk bigint, project_pk int, evaluator_id text, metric_type text, events int, measured int,
        mean float8, mean_exact text, lowest float8, highest float8, unmeasured int, failed int, failed_rank int,
        higher_is_better boolean, raw_out_of_range boolean)
), gone AS (
    DELETE FROM score_rollups s
    WHERE s.execution_pk IN (SELECT jsonb_array_elements_text(%(executions)s::jsonb)::bigint)
        AND NOT EXISTS (SELECT FROM fresh f WHERE (f.execution_pk, f.evaluator_id, f.metric_type)
            = (s.execution_pk, s.evaluator_id, s.metric_type))
)
INSERT INTO score_rollups ({_COLUMNS})
SELECT {_COLUMNS} FROM fresh ORDER BY execution_pk, evaluator_id, metric_type
ON CONFLICT (execution_pk, evaluator_id, metric_type) DO UPDATE SET
    events = excluded.events, measured = excluded.measured, mean = excluded.mean, mean_exact = excluded.mean_exact,
    lowest = excluded.lowest, highest = excluded.highest, unmeasured = excluded.unmeasured,
    failed = excluded.failed, failed_rank = excluded.failed_rank,
    higher_is_better = excluded.higher_is_better, raw_out_of_range = excluded.raw_out_of_range
"""


class RollupRow(Struct):
    """A row of `score_rollups`."""

    execution_pk: int
    project_pk: int
    evaluator_id: str
    metric_type: str
    events: int
    measured: int
    mean: float | None
    mean_exact: str | None
    lowest: float | None
    highest: float | None
    unmeasured: int
    failed: int
    failed_rank: int | None
    higher_is_better: bool
    raw_out_of_range: bool


@dataclass(frozen=True, slots=True)
class Examined:
    """The summaries of one execution's pairs."""

    execution_pk: int
    project_pk: int
    summaries: Collection[PairSummary]


def replace(connection: Connection, examined: Iterable[Examined]) -> None:
    """Put the summaries in place of what these executions had."""
    examined = list(examined)
    rows = [_row(execution, pair) for execution in examined for pair in execution.summaries]
    parameters = {
        "rows": json_text(rows),
        "executions": json_text([execution.execution_pk for execution in examined]),
    }
    connection.exec_driver_sql(_REPLACE, parameters)


def _row(execution: Examined, pair: PairSummary) -> RollupRow:
    return RollupRow(
        execution.execution_pk,
        execution.project_pk,
        pair.evaluator_id,
        pair.metric_type,
        pair.events,
        pair.measured,
        None if pair.mean is None else nearest_float(pair.mean),
        None if pair.mean is None else str(pair.mean),
        pair.lowest,
        pair.highest,
        pair.unmeasured,
        pair.failed,
        pair.failed_rank,
        pair.higher_is_better,
        pair.raw_out_of_range,
    )


@dataclass(frozen=True, slots=True)
class Judgeable:
    """An execution's pairs as they were summed up, for judging them again."""

    execution_id: str
    summaries: list[PairSummary]


_FLOOR = """coalesce((%(map{n})s::jsonb ->> (r.evaluator_id || ':' || r.metric_type))::float8, %(floor{n})s)"""
_IN_SPAN = """x.project_pk = %(project)s AND x.started_at > now() - %(days)s * interval '1 day'
    AND x.examined_at IS NOT NULL"""
_HAS_MEAN = "r.higher_is_better AND r.mean IS NOT NULL"

# Means between the two floors, the floors themselves included: what is no clear case is judged exactly afterwards.
_BETWEEN = f"""
SELECT x.execution_id, r.evaluator_id, r.metric_type, r.events, r.measured, r.mean_exact, r.lowest, r.highest,
    r.unmeasured, r.failed, r.failed_rank, r.higher_is_better, r.raw_out_of_range
FROM executions x JOIN score_rollups r ON r.execution_pk = x.pk
WHERE x.pk IN (
    SELECT r.execution_pk FROM score_rollups r JOIN executions x ON x.pk = r.execution_pk
    WHERE r.project_pk = %(project)s AND {_IN_SPAN} AND {_HAS_MEAN} AND r.failed = 0
        AND {_FLOOR.format(n=1)} <> {_FLOOR.format(n=2)}
        AND r.mean BETWEEN least({_FLOOR.format(n=1)}, {_FLOOR.format(n=2)})
            AND greatest({_FLOOR.format(n=1)}, {_FLOOR.format(n=2)}))
ORDER BY x.started_at DESC, x.pk DESC
"""

# The rule's own order and cap: of an execution's pairs that fail only the first twenty fire. Rounding keeps the order,
# so that only a mean that rounds to its floor is decided by the fraction.
_FIRING = f"""
WITH failing AS (
    SELECT r.evaluator_id, r.metric_type, row_number() OVER (PARTITION BY r.execution_pk ORDER BY r.failed_rank,
        (r.evaluator_id || ':' || r.metric_type) COLLATE "C", r.evaluator_id COLLATE "C") AS place
    FROM score_rollups r JOIN executions x ON x.pk = r.execution_pk
    WHERE r.project_pk = %(project)s AND {_IN_SPAN}
        AND (r.failed > 0 OR {_HAS_MEAN} AND (r.mean < {_FLOOR.format(n=1)} OR r.mean = {_FLOOR.format(n=1)}
            AND split_part(r.mean_exact, '/', 1)::numeric < ({_FLOOR.format(n=1)})::text::numeric
                * coalesce(nullif(split_part(r.mean_exact, '/', 2), ''), '1')::numeric))
)
SELECT evaluator_id, metric_type, count(*)
FROM failing JOIN jsonb_array_elements(%(pairs)s::jsonb) AS p ON evaluator_id = p ->> 0 AND metric_type = p ->> 1
WHERE place <= %(cap)s
GROUP BY 1, 2
"""

# One step of the index a pair, however many rows a pair has.
_PAIRS = """
WITH RECURSIVE pairs AS (
    (SELECT evaluator_id, metric_type FROM score_rollups WHERE project_pk = %(project)s
    ORDER BY evaluator_id, metric_type LIMIT 1)
    UNION ALL
    SELECT following.evaluator_id, following.metric_type
    FROM pairs CROSS JOIN LATERAL (
        SELECT r.evaluator_id, r.metric_type FROM score_rollups r
        WHERE r.project_pk = %(project)s
            AND (r.evaluator_id, r.metric_type) > (pairs.evaluator_id, pairs.metric_type)
        ORDER BY r.evaluator_id, r.metric_type LIMIT 1) following
)
SELECT evaluator_id, metric_type FROM pairs LIMIT %(limit)s
"""

_EXECUTIONS_IN_SPAN = f"SELECT count(*) FROM executions x WHERE {_IN_SPAN}"


def between_floors(
    connection: Connection, project_pk: int, old: Thresholds, new: Thresholds, days: int
) -> list[Judgeable]:
    """Read the examined executions of the last days that other floors might judge otherwise."""
    parameters = {"project": project_pk, "days": days, **_floor(1, old), **_floor(2, new)}
    rows = connection.exec_driver_sql(_BETWEEN, parameters)
    return [
        Judgeable(execution_id, [_summary(row[1:]) for row in pairs])
        for execution_id, pairs in groupby(rows, key=lambda row: str(row[0]))
    ]


def count_firing(
    connection: Connection,
    project_pk: int,
    floors: Thresholds,
    pairs: Collection[tuple[str, str]],
    days: int,
) -> Counter[tuple[str, str]]:
    """Count the executions of the last days in which each of some pairs fires."""
    parameters = {
        "project": project_pk,
        "days": days,
        "cap": MAX_FINDINGS,
        "pairs": json_text([list(pair) for pair in pairs]),
        **_floor(1, floors),
    }
    rows = connection.exec_driver_sql(_FIRING, parameters)
    return Counter({(evaluator, metric): count for evaluator, metric, count in rows})


def count_executions(connection: Connection, project_pk: int, days: int) -> int:
    """Count the executions of the last days that were examined."""
    parameters = {"project": project_pk, "days": days}
    return int(connection.exec_driver_sql(_EXECUTIONS_IN_SPAN, parameters).scalar_one())


def of_execution(connection: Connection, execution_pk: int) -> list[RollupRow]:
    """Read an execution's rollups, by pair."""
    rows = connection.exec_driver_sql(
        f"SELECT {_COLUMNS} FROM score_rollups WHERE execution_pk = %(pk)s"
        " ORDER BY evaluator_id, metric_type",
        {"pk": execution_pk},
    )
    return [RollupRow(*row) for row in rows]


def pairs_of_project(
    connection: Connection, project_pk: int, limit: int = 200
) -> list[tuple[str, str]]:
    """List the (evaluator, metric) pairs that a project has sent scores of, by name."""
    parameters = {"project": project_pk, "limit": limit}
    rows = connection.exec_driver_sql(_PAIRS, parameters)
    return [(evaluator_id, metric_type) for evaluator_id, metric_type in rows]


def _floor(number: int, floors: Thresholds) -> dict[str, Any]:
    return {
        f"floor{number}": floors.mean_floor,
        f"map{number}": json_text([floors.per_evaluator_floors])[1:-1],
    }


def _summary(row: Any) -> PairSummary:
    evaluator_id, metric_type, events, measured, mean_exact, *rest = row
    mean = None if mean_exact is None else Fraction(mean_exact)
    return PairSummary._make((evaluator_id, metric_type, events, measured, mean, *rest, ()))

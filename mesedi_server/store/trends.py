"""How often and when: groups and pairs by day of the project's zone, and how a pair's scores lie.

Counts come from `group_days`, `group_weeks`, `group_periods` and `pair_days`, which triggers keep; distributions from a
bounded number of rollups.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, TypeAlias

from msgspec import Struct
from sqlalchemy import ColumnElement, Select, Table, not_, select

from mesedi_server.store.database import Connection
from mesedi_server.store.tables import group_days, group_periods, group_weeks

Pair: TypeAlias = tuple[str, str]
"""An evaluator and a metric."""
Counts: TypeAlias = list[int]
"""Numbers day by day, that of the first day of a span first."""
Span: TypeAlias = list[date]
"""Days of a project's zone that follow each other, the earliest first."""

MAX_NAME_CHARS = 256
"""Characters of a release or environment by which occurrences are told apart."""
DAYS_A_WEEK = 7
DAYS_A_PERIOD = 28
SAMPLE = 1_000
"""Rollups, the latest of a pair, that a distribution is made of."""
BINS = 20
"""Equal parts of [0, 1]."""

_d = group_days.c
_w = group_weeks.c

# `width_bucket` counts from 1, 0 is below 0, BINS + 1 above 1; 1 itself belongs to the last bin.
_DISTRIBUTION = f"""
SELECT CASE WHEN mean = 1 THEN {BINS} ELSE width_bucket(mean, 0, 1, {BINS}) END,
    failed > 0 OR higher_is_better AND mean < %(floor)s, count(*),
    bool_or(raw_out_of_range)
FROM (SELECT mean, failed, higher_is_better, raw_out_of_range FROM score_rollups
    WHERE project_pk = %(project)s AND evaluator_id = %(evaluator)s AND metric_type = %(metric)s
    ORDER BY execution_pk DESC LIMIT {SAMPLE}) AS latest
GROUP BY 1, 2
"""

# Days come as text, a day's place in the span and its number: thousands of numbers are read in a tenth of the time that
# as many rows take, and a third of that of arrays.
_COUNTS = "string_agg(place::text, ' ') AS places, string_agg(number::text, ' ') AS numbers"

# One group after the other: a plan that is prepared for any days would go through all groups of the days.
_OF_GROUPS = f"""
SELECT asked.group_pk, own.places, own.numbers
FROM unnest(%(groups)s::bigint[]) AS asked (group_pk) CROSS JOIN LATERAL (
    SELECT {_COUNTS} FROM (
        SELECT day - %(first)s::date AS place, sum(occurrences) AS number FROM group_days
        WHERE group_pk = asked.group_pk AND day BETWEEN %(first)s::date AND %(last)s::date{{named}}
        GROUP BY day) AS by_day) AS own
WHERE own.places IS NOT NULL
"""

_INTERACTIONS = f"""
SELECT evaluator, metric, {_COUNTS} FROM (
    SELECT asked.evaluator, asked.metric, p.day - %(first)s::date AS place, p.interactions AS number
    FROM unnest(%(evaluators)s::text[], %(metrics)s::text[]) AS asked (evaluator, metric)
    JOIN pair_days p ON p.evaluator_id = asked.evaluator AND p.metric_type = asked.metric
    WHERE p.project_pk = %(project)s AND p.day BETWEEN %(first)s::date AND %(last)s::date) AS by_day
GROUP BY evaluator, metric
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Which occurrences are counted; None: all."""

    since: date | None = None
    """First day, in the project's zone."""
    release: str | None = None
    environment: str | None = None


class Bin(Struct, frozen=True):
    """A part of a distribution."""

    failing: int = 0
    """Executions that fail, by the floor given or by a verdict."""
    passing: int = 0


class Distribution(Struct, frozen=True, kw_only=True):
    """How the means of a pair's latest executions lie."""

    bins: list[Bin]
    """BINS equal parts of [0, 1], the lowest first."""
    below: Bin
    """Means under 0."""
    above: Bin
    """Means over 1."""
    unmeasured: int
    """Executions without a mean."""
    is_out_of_range: bool = False
    """A score without a scale lies outside [0, 1]: no floor can judge it."""

    @property
    def total(self) -> int:
        """Executions that have a mean."""
        return sum(one.failing + one.passing for one in (*self.bins, self.below, self.above))


def of_project(project_pk: int, wanted: Slice) -> list[Select[Any]]:
    """Select parts of what each group of a project has in a slice, as `group_pk` and `occurrences`: to be summed up.

    What fills whole weeks and periods of four weeks is read as such: a tenth of the rows.
    """
    by_period = _by_period(project_pk, wanted)
    if wanted.since is None:
        return [by_period]
    week, period = _next(DAYS_A_WEEK, wanted.since), _next(DAYS_A_PERIOD, wanted.since)
    return [
        by_period.where(group_periods.c.period >= period),
        _by_week(project_pk, wanted).where(_w.week >= week, _w.week < period),
        _by_day(project_pk, wanted).where(_d.day >= wanted.since, _d.day < week),
    ]


# Which kind of row is meant is said in the text: a parameter would hide it from prepared plans.
def _by_period(project_pk: int, wanted: Slice) -> Select[Any]:
    p = group_periods.c
    return select(p.group_pk, p.occurrences).where(
        p.project_pk == project_pk,
        p.any_release if wanted.release is None else not_(p.any_release),
        p.any_environment if wanted.environment is None else not_(p.any_environment),
        p.release == (wanted.release or "")[:MAX_NAME_CHARS],
        p.environment == (wanted.environment or "")[:MAX_NAME_CHARS],
    )


def _by_week(project_pk: int, wanted: Slice) -> Select[Any]:
    is_whole = wanted.release is None and wanted.environment is None
    kind = _w.is_total if is_whole else not_(_w.is_total)
    statement = select(_w.group_pk, _w.occurrences).where(_w.project_pk == project_pk, kind)
    return statement.where(*_named(group_weeks, wanted))


def _by_day(project_pk: int, wanted: Slice) -> Select[Any]:
    statement = select(_d.group_pk, _d.occurrences).where(_d.project_pk == project_pk)
    return statement.where(*_named(group_days, wanted))


def _next(length: int, day: date) -> date:
    """Return the first day, from a day on, that begins a span of this length; the first of all was in the year 1."""
    return day + timedelta(days=-(day.toordinal() - 1) % length)


def of_groups(
    connection: Connection,
    group_pks: Collection[int],
    span: Span,
    *,
    release: str | None = None,
    environment: str | None = None,
) -> dict[int, Counts]:
    """Count the occurrences of some groups on each day of a span."""
    names = {"release": release, "environment": environment}
    given = {name: text[:MAX_NAME_CHARS] for name, text in names.items() if text is not None}
    named = "".join(f" AND {name} = %({name})s" for name in given)
    parameters = {"groups": list(group_pks), "first": span[0], "last": span[-1], **given}
    counts = {pk: [0] * len(span) for pk in group_pks}
    for group_pk, places, numbers in connection.exec_driver_sql(
        _OF_GROUPS.format(named=named), parameters
    ):
        _fill(counts[group_pk], places, numbers)
    return counts


def interactions(
    connection: Connection, project_pk: int, pairs: Collection[Pair], span: Span
) -> dict[Pair, Counts]:
    """Count the executions that carried each of some pairs, on each day of a span."""
    parameters = {
        "project": project_pk,
        "evaluators": [evaluator for evaluator, _ in pairs],
        "metrics": [metric for _, metric in pairs],
        "first": span[0],
        "last": span[-1],
    }
    counts = {pair: [0] * len(span) for pair in pairs}
    for evaluator, metric, places, numbers in connection.exec_driver_sql(_INTERACTIONS, parameters):
        _fill(counts[evaluator, metric], places, numbers)
    return counts


def distribution(connection: Connection, project_pk: int, pair: Pair, floor: float) -> Distribution:
    """Read how the means of a pair's latest executions lie, and which of them fail by a floor."""
    evaluator, metric = pair
    parameters = {
        "project": project_pk,
        "evaluator": evaluator,
        "metric": metric,
        "floor": floor,
    }
    found: dict[int | None, dict[bool, int]] = {}
    is_out_of_range = False
    for place, is_failing, number, is_out in connection.exec_driver_sql(_DISTRIBUTION, parameters):
        found.setdefault(place, {})[bool(is_failing)] = number
        is_out_of_range |= is_out
    below, *bins, above = (
        Bin(counts.get(True, 0), counts.get(False, 0))
        for counts in (found.get(place, {}) for place in range(BINS + 2))
    )
    unmeasured = sum(found.get(None, {}).values())
    return Distribution(
        bins=bins,
        below=below,
        above=above,
        unmeasured=unmeasured,
        is_out_of_range=is_out_of_range,
    )


def _fill(counts: Counts, places: str, numbers: str) -> None:
    for place, number in zip(places.split(), numbers.split(), strict=True):
        counts[int(place)] = int(number)


def _named(table: Table, wanted: Slice) -> list[ColumnElement[bool]]:
    names = (("release", wanted.release), ("environment", wanted.environment))
    return [table.c[column] == name[:MAX_NAME_CHARS] for column, name in names if name is not None]

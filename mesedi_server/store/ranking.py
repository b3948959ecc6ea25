"""The list of failure groups as a page shows it: those that fail most in a span of days first."""

from dataclasses import replace
from typing import Any

from msgspec import Struct
from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    cast,
    func,
    lateral,
    literal_column,
    null,
    select,
    true,
    union_all,
)

from mesedi_server.store import failure_groups, trends
from mesedi_server.store.database import Connection
from mesedi_server.store.failure_groups import FailureGroup, GroupFilter
from mesedi_server.store.tables import failure_groups as groups
from mesedi_server.store.tables import occurrences
from mesedi_server.store.trends import Slice

_g = groups.c
_o = occurrences.c


class RankedGroup(Struct, frozen=True):
    """A group, and how often it failed in the slice that was asked for."""

    group: FailureGroup
    occurrences: int
    release: str | None
    """Release of its latest member."""


def biggest(
    connection: Connection,
    project_pk: int,
    wanted: GroupFilter,
    counted: Slice,
    *,
    offset: int,
    limit: int,
) -> list[RankedGroup]:
    """List groups by their occurrences in a slice, those with the most first; groups without any are left out.

    Without bounds the slice is all of a group's occurrences, and `wanted` decides on groups that have none.
    """
    # The slice says which releases and environments; every day's count has both.
    asked = failure_groups.conditions(replace(wanted, release=None, environment=None))
    is_asked = and_(_g.project_pk == project_pk, *asked)
    is_bounded = counted != Slice()
    ranked = _by_slice(project_pk, counted, is_asked) if is_bounded else _by_all(is_asked)
    few = ranked.offset(offset).limit(limit).subquery("ranked")
    newest = _newest_release()
    statement = (
        failure_groups.selected()
        .add_columns(few.c.number, newest.c.release.label("newest_release"))
        .join(few, few.c.pk == _g.pk)
        .outerjoin(newest, true())
        .order_by(few.c.number.desc(), _g.last_seen_at.desc(), _g.pk.desc())
    )
    return [
        RankedGroup(FailureGroup(**row), int(number), release)
        for row, number, release in map(_parted, connection.execute(statement).mappings())
    ]


def _by_all(is_asked: ColumnElement[bool]) -> Select[Any]:
    """Rank groups by all that they have."""
    number = _g.occurrence_count.label("number")
    ranked = select(_g.pk, number).where(is_asked)
    return ranked.order_by(number.desc(), _g.last_seen_at.desc(), _g.pk.desc())


def _by_slice(project_pk: int, counted: Slice, is_asked: ColumnElement[bool]) -> Select[Any]:
    """Rank groups by what they have in a slice.

    Groups and counts are summed up together, not joined: however wrong the planner guesses how many there are, it takes
    each row once.
    """
    asked = select(
        _g.pk.label("group_pk"), literal_column("0").label("occurrences"), _g.last_seen_at
    ).where(is_asked)
    unknown = cast(null(), _g.last_seen_at.type)
    parts = [part.add_columns(unknown) for part in trends.of_project(project_pk, counted)]
    c = union_all(asked, *parts).subquery("counted").c
    number, seen_at = func.sum(c.occurrences).label("number"), func.max(c.last_seen_at)
    return (
        select(c.group_pk.label("pk"), number)
        .group_by(c.group_pk)
        .having(number > 0, seen_at.is_not(None))
        .order_by(number.desc(), seen_at.desc(), c.group_pk.desc())
    )


def _newest_release() -> Any:
    return lateral(
        select(_o.release)
        .where(_o.group_pk == _g.pk)
        .order_by(_o.occurred_at.desc(), _o.execution_pk.desc())
        .limit(1)
    )


def _parted(row: Any) -> tuple[dict[str, Any], int, str | None]:
    values = dict(row)
    number, release = values.pop("number"), values.pop("newest_release")
    return values, number, release

"""The list of failure groups as a page shows it: those that fail most in a span of days first."""

from dataclasses import replace
from typing import Any

from msgspec import Struct
from sqlalchemy import Select, lateral, select, true

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
    order = _g.last_seen_at.desc(), _g.pk.desc()
    ranked = _numbered(project_pk, counted).where(*asked)
    ranked = ranked.order_by(ranked.selected_columns.number.desc(), *order)
    few = ranked.offset(offset).limit(limit).subquery("ranked")
    newest = _newest_release()
    statement = (
        failure_groups.selected()
        .add_columns(few.c.number, newest.c.release.label("newest_release"))
        .join(few, few.c.pk == _g.pk)
        .outerjoin(newest, true())
        .order_by(few.c.number.desc(), *order)
    )
    return [
        RankedGroup(FailureGroup(**row), int(number), release)
        for row, number, release in map(_parted, connection.execute(statement).mappings())
    ]


def _numbered(project_pk: int, counted: Slice) -> Select[Any]:
    if counted == Slice():
        number = _g.occurrence_count.label("number")
        return select(_g.pk, number).where(_g.project_pk == project_pk)
    sums = trends.totals(project_pk, counted).subquery("sums")
    return select(_g.pk, sums.c.number).join_from(sums, groups, sums.c.group_pk == _g.pk)


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

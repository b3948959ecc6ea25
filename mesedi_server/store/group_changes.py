"""Changes of many failure groups at once: on a list of ids that somebody has seen, and with a way back."""

import secrets
from collections.abc import Collection
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import func, insert, select, update

from mesedi_server.errors import NotFoundError
from mesedi_server.store import failure_groups
from mesedi_server.store.database import Connection
from mesedi_server.store.failure_groups import State, StateChange
from mesedi_server.store.json_text import json_text
from mesedi_server.store.tables import failure_groups as groups
from mesedi_server.store.tables import group_changes

UNDONE = "undone"
"""Kind of the line that an undo leaves in a group's history."""

_g = groups.c
_c = group_changes.c


class Before(Struct, frozen=True):
    """What a change replaced in one group."""

    pk: int
    state: State
    state_changed_at: datetime | None
    state_changed_by: str | None
    state_reason: str | None
    ignored_until: datetime | None
    ignored_until_count: int | None


class GroupsChange(Struct, frozen=True):
    """A change that was made, for a page to tell of and to take back."""

    change_id: str
    state: State
    groups: int
    is_undone: bool


_BEFORE = [_g[name] for name in Before.__struct_fields__]

# Groups that have been changed again since, by people or by a regression, stay as they are.
_RESTORE = """
UPDATE failure_groups g SET state = b.state, state_changed_at = b.state_changed_at,
    state_changed_by = b.state_changed_by, state_reason = b.state_reason, ignored_until = b.ignored_until,
    ignored_until_count = b.ignored_until_count
FROM jsonb_to_recordset(%(before)s::jsonb) AS b (pk bigint, state text, state_changed_at timestamptz,
    state_changed_by text, state_reason text, ignored_until timestamptz, ignored_until_count bigint)
WHERE g.pk = b.pk AND g.state = %(state)s AND g.state_changed_at = %(at)s
RETURNING g.pk
"""


def make(
    connection: Connection, project_pk: int, group_ids: Collection[str], change: StateChange
) -> GroupsChange:
    """Put groups into a state; those that are in it already stay as they are, without a trace.

    Raises:
        NotFoundError: one is unknown in this project; nothing may be committed.
    """
    found = _locked(connection, project_pk, group_ids)
    if len(found) != len(set(group_ids)):
        raise NotFoundError("failure group")
    before = [one for one, counted in found if _differs(one, counted, change)]
    made = GroupsChange(f"chg-{secrets.token_hex(8)}", change.state, len(before), is_undone=False)
    if before:
        _apply(connection, [one.pk for one in before], change)
        connection.execute(
            insert(group_changes).values(
                project_pk=project_pk,
                change_id=made.change_id,
                actor=change.actor,
                state=change.state,
                before=msgspec.to_builtins(before),
            )
        )
    return made


def find(connection: Connection, project_pk: int, change_id: str) -> GroupsChange | None:
    """Find a change; None: unknown in this project."""
    statement = select(
        _c.change_id, _c.state, func.jsonb_array_length(_c.before), _c.undone_at.is_not(None)
    ).where(_c.project_pk == project_pk, _c.change_id == change_id)
    row = connection.execute(statement).one_or_none()
    return None if row is None else GroupsChange(*row)


def undo(connection: Connection, project_pk: int, change_id: str, *, actor: str) -> int:
    """Put the groups of a change back into what they were and return how many; the second time none.

    Raises:
        NotFoundError: unknown in this project.
    """
    change = connection.execute(
        select(_c.pk, _c.at, _c.state, _c.before, _c.undone_at)
        .where(_c.project_pk == project_pk, _c.change_id == change_id)
        .with_for_update()
    ).one_or_none()
    if change is None:
        raise NotFoundError("change")
    if change.undone_at is not None:
        return 0
    _lock(connection, [one["pk"] for one in change.before])
    parameters = {"before": json_text(change.before), "state": change.state, "at": change.at}
    restored = [pk for (pk,) in connection.exec_driver_sql(_RESTORE, parameters)]
    if restored:
        failure_groups.note(connection, restored, UNDONE, actor, None)
    connection.execute(update(group_changes).where(_c.pk == change.pk).values(undone_at=func.now()))
    return len(restored)


def _locked(
    connection: Connection, project_pk: int, group_ids: Collection[str]
) -> list[tuple[Before, int]]:
    """Lock groups in the order of their keys, and return what they are, each with its count."""
    rows = connection.execute(
        select(*_BEFORE, _g.occurrence_count)
        .where(_g.project_pk == project_pk, _g.group_id.in_(group_ids))
        .order_by(_g.pk)
        .with_for_update()
    )
    return [(Before(*values), counted) for *values, counted in rows]


def _lock(connection: Connection, pks: Collection[int]) -> None:
    connection.execute(select(_g.pk).where(_g.pk.in_(pks)).order_by(_g.pk).with_for_update())


def _differs(group: Before, counted: int, change: StateChange) -> bool:
    wake_at = None if change.ignored_for is None else counted + change.ignored_for
    wanted = (change.state, change.ignored_until, wake_at)
    return wanted != (group.state, group.ignored_until, group.ignored_until_count)


def _apply(connection: Connection, pks: Collection[int], change: StateChange) -> None:
    values: dict[Any, Any] = {
        "state": change.state,
        "state_changed_at": func.now(),
        "state_changed_by": change.actor,
        "state_reason": change.reason,
        "ignored_until": change.ignored_until,
        "ignored_until_count": (
            None if change.ignored_for is None else _g.occurrence_count + change.ignored_for
        ),
    }
    connection.execute(update(groups).where(_g.pk.in_(pks)).values(values))
    kind = "reopened" if change.state == "open" else change.state
    failure_groups.note(connection, pks, kind, change.actor, change.reason)

"""Failure groups: what is shown of them, and the states that people put them in.

Their numbers are `occurrences.replace`'s business.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Literal

from msgspec import Struct
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    any_,
    bindparam,
    cast,
    exists,
    func,
    insert,
    lateral,
    select,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY

from mesedi_server.errors import NotFoundError
from mesedi_server.store import assessments, audit_log
from mesedi_server.store.database import Connection
from mesedi_server.store.paging import Page, Paging
from mesedi_server.store.tables import (
    executions,
    failure_groups,
    group_days,
    group_history,
    occurrences,
    score_rollups,
)
from mesedi_server.store.trends import MAX_NAME_CHARS

State = Literal["open", "acknowledged", "resolved", "ignored"]
STATES: tuple[State, ...] = ("open", "acknowledged", "resolved", "ignored")
NEEDS_SOMEBODY: tuple[State, ...] = ("open", "acknowledged")
"""States of the default list."""

DISCOVERY_INTERACTIONS = 20
"""Interactions that a pair needs before its failures are more than discovery (the seed's number)."""

# Names of lists in cursors.
_LIST = "failure_groups"
_MEMBERS = "members"

_g = failure_groups.c
_o = occurrences.c
_h = group_history.c

_HISTORY = (
    select(_h.at, _h.kind, _h.actor, _h.note, _h.release)
    .where(_h.group_pk == bindparam("group"))
    .order_by(_h.pk.desc())
    .limit(bindparam("number"))
)


class FailureGroup(Struct, frozen=True, kw_only=True):
    """A failure group as it is shown."""

    pk: int
    group_id: str
    failure_class: str
    signature: str
    evaluator_id: str
    metric_type: str
    severity: str
    state: State
    first_seen_at: datetime
    last_seen_at: datetime
    occurrence_count: int
    regressed_at: datetime | None
    regressed_release: str | None
    state_changed_at: datetime | None
    state_changed_by: str | None
    state_reason: str | None
    ignored_until: datetime | None
    ignored_until_count: int | None
    over_strict_at: datetime | None
    over_strict_by: str | None
    over_strict_note: str | None
    sample_execution_id: str | None
    interactions: int
    """Executions that carry the group's pair, counted up to DISCOVERY_INTERACTIONS; 0 for the other classes."""

    @property
    def is_discovery(self) -> bool:
        """The pair is too new for its failures to be a regression."""
        return bool(self.evaluator_id) and self.interactions < DISCOVERY_INTERACTIONS


class Member(Struct, frozen=True, kw_only=True):
    """An execution in a group, and why it is there."""

    execution_pk: int
    execution_id: str
    status: str
    started_at: datetime
    occurred_at: datetime
    rule: str
    severity: str
    evidence: dict[str, Any]
    threshold_version: int
    release: str | None
    environment: str | None


_MEMBERS_OF = select(
    _o.execution_pk,
    executions.c.execution_id,
    executions.c.status,
    executions.c.started_at,
    *(_o[name] for name in Member.__struct_fields__[4:]),
).join_from(occurrences, executions)


class GroupOfExecution(Struct, frozen=True, kw_only=True):
    """A group that an execution belongs to, and why."""

    group_id: str
    failure_class: str
    signature: str
    state: State
    rule: str
    evidence: dict[str, Any]
    threshold_version: int


class HistoryLine(Struct, frozen=True, kw_only=True):
    """Something that happened to a group."""

    at: datetime
    kind: str
    actor: str | None
    note: str | None
    release: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFilter:
    """Which groups a list has; None: all, but for `states`."""

    q: str | None = None
    failure_class: str | None = None
    states: tuple[State, ...] = NEEDS_SOMEBODY
    evaluator: str | None = None
    metric: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    release: str | None = None
    environment: str | None = None
    is_empty_shown: bool = False
    """Groups whose members were all taken back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """What a person wants a group to be.

    `ignored_until` and `ignored_for` (new members) end an ignore by themselves; neither: it stays.
    """

    state: State
    actor: str
    reason: str | None = None
    ignored_until: datetime | None = None
    ignored_for: int | None = None


def list_page(
    connection: Connection, project_pk: int, wanted: GroupFilter, paging: Paging
) -> Page[FailureGroup]:
    """List groups, last seen first."""
    statement = (
        selected()
        .where(_g.project_pk == project_pk, *conditions(wanted))
        .where(*paging.after(_LIST, _g.last_seen_at, _g.pk))
        .order_by(_g.last_seen_at.desc(), _g.pk.desc())
        .limit(paging.limit + 1)
    )
    return paging.page(_LIST, _shown(connection, statement), lambda g: (g.last_seen_at, g.pk))


def get(connection: Connection, project_pk: int, group_id: str) -> FailureGroup:
    """Read one group.

    Raises:
        NotFoundError: unknown in this project.
    """
    parameters = {"project": project_pk, "group": group_id}
    row = connection.execute(_one(), parameters).mappings().one_or_none()
    if row is None:
        raise NotFoundError("failure group")
    return FailureGroup(**row)


def some(connection: Connection, project_pk: int, group_ids: Collection[str]) -> list[FailureGroup]:
    """Read some groups, by signature; those that are unknown in this project are left out."""
    chosen = selected().where(_g.project_pk == project_pk, _g.group_id.in_(group_ids))
    return _shown(connection, chosen.order_by(_g.signature, _g.pk))


def known(connection: Connection, project_pk: int, group_ids: Collection[str]) -> set[str]:
    """Tell which of some groups the project has; others may be made by later examinations."""
    statement = select(_g.group_id).where(_g.project_pk == project_pk, _g.group_id.in_(group_ids))
    return set(connection.execute(statement).scalars())


def members_page(
    connection: Connection, group_pk: int, paging: Paging, finding: str | None = None
) -> Page[Member]:
    """List a group's executions, the latest first: all, or those that a number of its sums is made of."""
    wanted = []
    if finding is not None:
        chosen = assessments.executions_with(connection, group_pk, finding)
        wanted = [_o.execution_pk == any_(cast(chosen, ARRAY(BigInteger)))]
    statement = (
        _MEMBERS_OF.where(_o.group_pk == group_pk, *wanted)
        .where(*paging.after(_MEMBERS, _o.occurred_at, _o.execution_pk))
        .order_by(_o.occurred_at.desc(), _o.execution_pk.desc())
        .limit(paging.limit + 1)
    )
    rows = [Member(**row) for row in connection.execute(statement).mappings()]
    return paging.page(_MEMBERS, rows, lambda m: (m.occurred_at, m.execution_pk))


def of_execution(connection: Connection, execution_pk: int) -> list[GroupOfExecution]:
    """List the groups that an execution belongs to, by class and signature."""
    statement = (
        select(
            _g.group_id,
            _g.failure_class,
            _g.signature,
            _g.state,
            _o.rule,
            _o.evidence,
            _o.threshold_version,
        )
        .join_from(occurrences, failure_groups)
        .where(_o.execution_pk == execution_pk)
        .order_by(_g.failure_class, _g.signature, _g.group_id)
    )
    return [GroupOfExecution(**row) for row in connection.execute(statement).mappings()]


def history(connection: Connection, group_pk: int, limit: int = 200) -> list[HistoryLine]:
    """List what happened to a group, the newest first."""
    rows = connection.execute(_HISTORY, {"group": group_pk, "number": limit})
    return [HistoryLine(**row) for row in rows.mappings()]


def change_state(
    connection: Connection, project_pk: int, group_id: str, change: StateChange
) -> FailureGroup:
    """Put a group into a state and return it; what it is already, it stays, without a trace.

    Raises:
        NotFoundError: unknown in this project.
    """
    _lock(connection, project_pk, group_id)
    group = get(connection, project_pk, group_id)
    wake_at = None if change.ignored_for is None else group.occurrence_count + change.ignored_for
    wanted = (change.state, change.ignored_until, wake_at)
    if wanted == (group.state, group.ignored_until, group.ignored_until_count):
        return group
    connection.execute(
        update(failure_groups)
        .where(_g.pk == group.pk)
        .values(
            state=change.state,
            state_changed_at=func.now(),
            state_changed_by=change.actor,
            state_reason=change.reason,
            ignored_until=change.ignored_until,
            ignored_until_count=wake_at,
        )
    )
    kind = "reopened" if change.state == "open" else change.state
    note(connection, [group.pk], kind, change.actor, change.reason)
    return get(connection, project_pk, group_id)


def mark_over_strict(
    connection: Connection, project_pk: int, group_id: str, *, actor: str, note: str | None
) -> FailureGroup:
    """Say that the evaluator, not the answers, is at fault: the group is informational from now on.

    Raises:
        NotFoundError: unknown in this project.
    """
    values = {
        "over_strict_at": func.now(),
        "over_strict_by": actor,
        "over_strict_note": note,
    }
    return _set_over_strict(connection, project_pk, group_id, "over_strict", values)


def take_back_over_strict(
    connection: Connection, project_pk: int, group_id: str, *, actor: str, note: str | None
) -> FailureGroup:
    """Take `mark_over_strict` back.

    Raises:
        NotFoundError: unknown in this project.
    """
    values = {"over_strict_at": None, "over_strict_by": actor, "over_strict_note": note}
    return _set_over_strict(connection, project_pk, group_id, "over_strict_taken_back", values)


def comment(
    connection: Connection, project_pk: int, group_id: str, *, actor: str, text: str
) -> None:
    """Keep what somebody says of a group, in its history.

    Raises:
        NotFoundError: unknown in this project.
    """
    group = get(connection, project_pk, group_id)
    note(connection, [group.pk], "commented", actor, text)


def end_expired_ignores(connection: Connection) -> int:
    """Open the groups whose ignore has run out; return how many."""
    # A group that somebody is at is left for the next time: no waiting, so no waiting in a circle.
    expired = (
        select(_g.pk)
        .where(_g.state == "ignored", _g.ignored_until <= func.now())
        .with_for_update(skip_locked=True)
    )
    opened = (
        update(failure_groups)
        .where(_g.pk.in_(expired))
        .values(state="open", ignored_until=None, ignored_until_count=None)
        .returning(_g.pk)
    )
    pks = list(connection.execute(opened).scalars())
    if pks:
        note(connection, pks, "ignore_ended", None, None)
    return len(pks)


def _set_over_strict(
    connection: Connection, project_pk: int, group_id: str, kind: str, values: dict[str, Any]
) -> FailureGroup:
    _lock(connection, project_pk, group_id)
    group = get(connection, project_pk, group_id)
    if (group.over_strict_at is None) != (values["over_strict_at"] is None):
        connection.execute(update(failure_groups).where(_g.pk == group.pk).values(values))
        note(connection, [group.pk], kind, values["over_strict_by"], values["over_strict_note"])
    return get(connection, project_pk, group_id)


def _lock(connection: Connection, project_pk: int, group_id: str) -> None:
    connection.execute(
        select(_g.pk).where(_g.project_pk == project_pk, _g.group_id == group_id).with_for_update()
    )


def note(
    connection: Connection,
    group_pks: Collection[int],
    kind: str,
    actor: str | None,
    text: str | None,
) -> None:
    """Add a line to the history of some groups, and to the audit log if a person or key did it."""
    remember(connection, group_pks, kind, actor, text)
    if actor is not None:
        audit_log.note_groups(connection, group_pks, actor, kind, text)


def remember(
    connection: Connection,
    group_pks: Collection[int],
    kind: str,
    actor: str | None,
    text: str | None,
) -> None:
    """Add a line to the history of some groups, whatever the audit log says of it."""
    lines = [
        {"group_pk": pk, "kind": kind, "actor": actor, "note": text} for pk in sorted(group_pks)
    ]
    connection.execute(insert(group_history).values(lines))


@cache
def selected() -> Select[Any]:
    """Select what makes a `FailureGroup` of each row of `failure_groups`."""
    sample = lateral(
        select(executions.c.execution_id)
        .join_from(occurrences, executions)
        .where(_o.group_pk == _g.pk)
        .order_by(_o.occurred_at, _o.execution_pk)
        .limit(1)
    )
    # Bounded: whether there are twenty matters, not how many there are.
    few = (
        select(score_rollups.c.execution_pk)
        .where(
            _g.evaluator_id != "",
            score_rollups.c.project_pk == _g.project_pk,
            score_rollups.c.evaluator_id == _g.evaluator_id,
            score_rollups.c.metric_type == _g.metric_type,
        )
        .limit(DISCOVERY_INTERACTIONS)
        .correlate(failure_groups)
        .subquery()
    )
    interactions = lateral(select(func.count().label("interactions")).select_from(few))
    own = [_g[name] for name in FailureGroup.__struct_fields__[:-2]]
    return (
        select(
            *own,
            sample.c.execution_id.label("sample_execution_id"),
            interactions.c.interactions,
        )
        .select_from(failure_groups)
        .outerjoin(sample, true())
        .join(interactions, true())
    )


@cache
def _one() -> Select[Any]:
    return selected().where(
        _g.project_pk == bindparam("project"), _g.group_id == bindparam("group")
    )


def _shown(connection: Connection, statement: Select[Any]) -> list[FailureGroup]:
    return [FailureGroup(**row) for row in connection.execute(statement).mappings()]


def conditions(wanted: GroupFilter) -> list[ColumnElement[bool]]:
    """Say which rows of `failure_groups` a filter lets through."""
    conditions: list[ColumnElement[bool]] = [_g.state.in_(wanted.states)]
    for column, value in (
        (_g.failure_class, wanted.failure_class),
        (_g.evaluator_id, wanted.evaluator),
        (_g.metric_type, wanted.metric),
    ):
        if value is not None:
            conditions.append(column == value)
    if not wanted.is_empty_shown:
        conditions.append(_g.occurrence_count > 0)
    if wanted.since is not None:
        conditions.append(_g.last_seen_at >= wanted.since)
    if wanted.until is not None:
        conditions.append(_g.first_seen_at < wanted.until)
    if wanted.q:
        conditions.append(_g.signature.icontains(wanted.q, autoescape=True))
    return conditions + _member_conditions(wanted)


def _member_conditions(wanted: GroupFilter) -> list[ColumnElement[bool]]:
    # A group has a row of counts a day, release and environment: far fewer than members.
    d = group_days.c
    asked = [
        column == value[:MAX_NAME_CHARS]
        for column, value in ((d.release, wanted.release), (d.environment, wanted.environment))
        if value is not None
    ]
    return [exists().where(d.group_pk == _g.pk, d.occurrences > 0, *asked)] if asked else []

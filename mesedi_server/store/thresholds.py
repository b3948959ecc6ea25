"""Thresholds: append-only; the newest row of a key counts."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import func, insert, select

from mesedi_server.store import audit_log, projects
from mesedi_server.store.database import Connection
from mesedi_server.store.json_text import json_text
from mesedi_server.store.tables import thresholds

_t = thresholds.c

_NEWEST = """
SELECT DISTINCT ON (project_pk, detector, threshold_key) project_pk, detector, threshold_key, value, version
FROM thresholds WHERE project_pk IN (SELECT jsonb_array_elements_text(%(projects)s::jsonb)::int)
ORDER BY project_pk, detector, threshold_key, version DESC
"""


@dataclass(frozen=True, slots=True)
class Values:
    """What a project has set for one detector; keys that it has not set are absent."""

    values: Mapping[str, Any]
    version: int


class Change(Struct, frozen=True):
    """One line of a key's history; a value of null is a reset to the default."""

    version: int
    value: Any
    is_reset: bool
    changed_at: datetime
    changed_by: str
    reason: str | None


NOTHING_SET = Values({}, 0)


def in_force(connection: Connection, project_pk: int, detector: str) -> Values:
    """Read what the project has set for a detector."""
    return all_in_force(connection, [project_pk]).get((project_pk, detector), NOTHING_SET)


def all_in_force(
    connection: Connection, project_pks: Collection[int]
) -> dict[tuple[int, str], Values]:
    """Read what some projects have set, by project and detector; what is absent has nothing set."""
    parameters = {"projects": json_text(list(project_pks))}
    found: dict[tuple[int, str], Values] = {}
    for project_pk, detector, key, value, version in connection.exec_driver_sql(
        _NEWEST, parameters
    ):
        before = found.get((project_pk, detector), NOTHING_SET)
        values = before.values if value is None else {**before.values, key: value}
        found[project_pk, detector] = Values(values, max(before.version, version))
    return found


def change(
    connection: Connection,
    project_pk: int,
    detector: str,
    key: str,
    value: Any,
    *,
    changed_by: str,
    reason: str | None,
) -> int:
    """Set a key, or reset it with None; return the new version."""
    # Two people at once: one after the other, each with a version of their own. NO KEY UPDATE: whoever stores events
    # for the project goes on meanwhile.
    projects.lock(connection, project_pk)
    newest = select(func.coalesce(func.max(_t.version), 0)).where(
        _t.project_pk == project_pk, _t.detector == detector
    )
    version = int(connection.execute(newest).scalar_one()) + 1
    connection.execute(
        insert(thresholds).values(
            project_pk=project_pk,
            detector=detector,
            version=version,
            threshold_key=key,
            value=value,
            changed_by=changed_by,
            reason=reason,
        )
    )
    action = "threshold.reset" if value is None else "threshold.changed"
    details = {"value": value, "version": version, "reason": reason}
    audit_log.note(
        connection, project_pk, changed_by, action, subject=f"{detector}.{key}", details=details
    )
    return version


def history(
    connection: Connection, project_pk: int, detector: str, key: str, limit: int = 200
) -> list[Change]:
    """List the changes of a key, newest first."""
    rows = connection.execute(
        select(_t.version, _t.value, _t.changed_at, _t.changed_by, _t.reason)
        .where(_t.project_pk == project_pk, _t.detector == detector, _t.threshold_key == key)
        .order_by(_t.version.desc())
        .limit(limit)
    )
    return [
        Change(version, value, value is None, changed_at, changed_by, reason)
        for version, value, changed_at, changed_by, reason in rows
    ]


def history_of_detector(
    connection: Connection, project_pk: int, detector: str, limit: int = 50
) -> list[tuple[str, Change]]:
    """List the changes of all of a detector's keys, each with its key, newest first."""
    rows = connection.execute(
        select(_t.threshold_key, _t.version, _t.value, _t.changed_at, _t.changed_by, _t.reason)
        .where(_t.project_pk == project_pk, _t.detector == detector)
        .order_by(_t.version.desc())
        .limit(limit)
    )
    return [
        (key, Change(version, value, value is None, changed_at, changed_by, reason))
        for key, version, value, changed_at, changed_by, reason in rows
    ]

"""What people decided in a project's executions, and the spikes that go on there."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert

from detectors import HumanIntervention, hitl_rejection_spike
from mesedi_server.store import projects
from mesedi_server.store.database import Connection
from mesedi_server.store.json_text import json_text, read_json
from mesedi_server.store.tables import spike_episodes

MAX_SKEW = timedelta(days=1)
"""How much earlier than its decision an event may be by its own clock; bounds what is read."""

_s = spike_episodes.c

# The type stands in the text, not in a parameter: otherwise no prepared plan could use the partial index.
_IS_INTERVENTION = f"e.event_type = '{hitl_rejection_spike.EVENT_TYPE}'"

# Of a payload, which may be large, only what the rule reads.
_INTERVENTIONS = f"""
SELECT e.event_id, e.sequence, e.timestamp, e.execution_pk::text,
    jsonb_build_object('response_kind', e.payload -> 'response_kind', 'decided_at', e.payload -> 'decided_at')::text
FROM events e
WHERE e.project_pk = %(project)s AND {_IS_INTERVENTION} AND e.timestamp >= %(since)s
"""

_WORTH_A_LOOK = f"""
SELECT p.pk FROM projects p
WHERE EXISTS (SELECT FROM spike_episodes s WHERE s.project_pk = p.pk)
    OR EXISTS (SELECT FROM events e
        WHERE e.project_pk = p.pk AND {_IS_INTERVENTION} AND e.timestamp >= now() - %(span)s)
ORDER BY p.pk
"""

# Locked, before any group is: none may be deleted between here and its occurrence.
_ORIGINS = """
SELECT pk, release, environment FROM executions
WHERE pk IN (SELECT jsonb_array_elements_text(%(executions)s::jsonb)::bigint)
ORDER BY pk FOR KEY SHARE
"""


class Origin(NamedTuple):
    """What an execution ran as."""

    release: str | None
    environment: str | None


def lock(connection: Connection, project_pk: int) -> datetime:
    """Wait until no one else looks at the project, and return the time that it is then."""
    projects.lock(connection, project_pk)
    # Not the transaction's time: events have come while this one waited.
    now: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return now


def interventions(
    connection: Connection, project_pk: int, since: datetime
) -> list[HumanIntervention]:
    """Read what people said from a time on, and what may belong there; execution ids are internal keys, in digits."""
    parameters = {"project": project_pk, "since": since - MAX_SKEW}
    rows = connection.exec_driver_sql(_INTERVENTIONS, parameters)
    return [
        HumanIntervention.from_payload(event_id, sequence, at, execution, read_json(payload))
        for event_id, sequence, at, execution, payload in rows
    ]


def worth_a_look(connection: Connection, window: timedelta) -> list[int]:
    """List the projects where a spike goes on, or people had a say within the window."""
    rows = connection.exec_driver_sql(_WORTH_A_LOOK, {"span": window + MAX_SKEW})
    return [pk for (pk,) in rows]


def origins(connection: Connection, execution_pks: Collection[int]) -> dict[int, Origin]:
    """Read what some executions ran as, and keep them from being deleted; those that are gone are left out."""
    parameters = {"executions": json_text(list(execution_pks))}
    rows = connection.exec_driver_sql(_ORIGINS, parameters)
    return {pk: Origin(release, environment) for pk, release, environment in rows}


def going_on(connection: Connection, project_pk: int) -> set[str]:
    """Read the rules whose spike has begun and is not over."""
    return set(connection.execute(select(_s.rule).where(_s.project_pk == project_pk)).scalars())


def set_going_on(connection: Connection, project_pk: int, rules: Collection[str]) -> None:
    """Begin the episodes of these rules, as far as they have not begun, and end all others."""
    connection.execute(
        delete(spike_episodes).where(_s.project_pk == project_pk, _s.rule.not_in(rules))
    )
    if rules:
        begun = insert(spike_episodes).values(
            [{"project_pk": project_pk, "rule": rule} for rule in sorted(rules)]
        )
        connection.execute(begun.on_conflict_do_nothing())

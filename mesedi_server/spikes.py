"""Spikes: what people decided in a project's recent executions, judged together.

Each look at a project is a transaction of its own: after an examination that saw people's decisions, and by beat,
because the window slides on without events. A spike opens its group once an episode, which lasts from the look that
finds the rate reached to the look that finds it below; what joins in between is counted quietly. Members stay: no
examination of a single execution takes them back.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from detectors import HumanIntervention, Spike, SpikeThresholds, hitl_rejection_spike
from detectors.hitl_rejection_spike import MEASUREMENT_WINDOW_MINUTES, decided_within
from mesedi_server.store import occurrences, projects, spikes, thresholds
from mesedi_server.store.database import Connection, Database
from mesedi_server.store.occurrences import OccurrenceRow

_LONGEST_WINDOW = timedelta(minutes=MEASUREMENT_WINDOW_MINUTES.bounds.highest)


def look(database: Database, project_pks: Iterable[int]) -> None:
    """Look at some projects, one after the other.

    Raises:
        UnavailableError: the database cannot be used; beat looks again.
    """
    for project_pk in sorted(project_pks):
        with database.transaction() as connection:
            _look(connection, project_pk)


def look_everywhere(database: Database) -> None:
    """Look at every project where people had a say lately, or a spike goes on.

    Raises:
        UnavailableError: as `look`.
    """
    with database.transaction() as connection:
        project_pks = spikes.worth_a_look(connection, _LONGEST_WINDOW)
    look(database, project_pks)


def _look(connection: Connection, project_pk: int) -> None:
    now = spikes.lock(connection, project_pk)
    settings = thresholds.in_force(connection, project_pk, hitl_rejection_spike.NAME)
    limits = SpikeThresholds.from_values(settings.values, settings.version)
    since = now - timedelta(minutes=limits.measurement_window_minutes)
    said = spikes.interventions(connection, project_pk, since)
    decided = decided_within(said, now, limits.measurement_window_minutes)
    found = hitl_rejection_spike.detect(decided, limits)
    if found:
        _record(connection, project_pk, found, decided, settings.version)
    spikes.set_going_on(connection, project_pk, {spike.finding.rule for spike in found})


def _record(
    connection: Connection,
    project_pk: int,
    found: list[Spike],
    decided: list[HumanIntervention],
    threshold_version: int,
) -> None:
    project_id = projects.public_ids(connection, [project_pk])[project_pk]
    going_on = spikes.going_on(connection, project_pk)
    origins = spikes.origins(connection, {int(pk) for spike in found for pk in spike.members})
    rows: list[OccurrenceRow] = []
    opening: set[str] = set()
    for spike in found:
        members = [
            OccurrenceRow.of(
                spike.finding,
                project_id,
                project_pk=project_pk,
                execution_pk=execution_pk,
                threshold_version=threshold_version,
                occurred_at=decided_at,
                release=origins[execution_pk].release,
                environment=origins[execution_pk].environment,
            )
            for execution_pk, decided_at in _members(spike, decided)
            if execution_pk in origins
        ]
        rows += members
        if spike.finding.rule not in going_on:
            opening.update(row.group_id for row in members)
    occurrences.add(connection, rows, opening=opening)


def _members(spike: Spike, decided: list[HumanIntervention]) -> list[tuple[int, datetime]]:
    """List the executions, each with the time of its last decision of the spike's kind."""
    of_kind = [i for i in decided if i.response_kind == spike.finding.rule]
    last = {i.execution_id: i.effective_at for i in sorted(of_kind, key=lambda i: i.effective_at)}
    return [(int(member), last[member]) for member in spike.members]

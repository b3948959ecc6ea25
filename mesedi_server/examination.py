"""The examination: an execution's events and its project's thresholds in, occurrences out.

One transaction a batch of executions. Running it twice changes nothing; a batch that dies leaves its executions due.
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate

from detectors import (
    Findings,
    PairSummary,
    Thresholds,
    crashes,
    grounding_failure,
    hitl_timeout,
    validator_failures,
)
from mesedi_server import assessing, spikes
from mesedi_server.errors import UnavailableError
from mesedi_server.store import (
    due_work,
    events,
    judge_work,
    occurrences,
    projects,
    rollups,
    thresholds,
)
from mesedi_server.store.database import Connection, Database, savepoint
from mesedi_server.store.due_work import DueExecution
from mesedi_server.store.events import Observed
from mesedi_server.store.occurrences import OccurrenceRow
from mesedi_server.store.thresholds import NOTHING_SET, Values

logger = logging.getLogger(__name__)

BATCH = 500
"""Executions that one transaction examines, at most."""
MAX_EVENTS = 50_000
"""Events of all of them, unless the first alone has more: what a worker holds in memory at once."""

CLASSES = (
    grounding_failure.NAME,
    validator_failures.NAME,
    hitl_timeout.NAME,
    crashes.NAME,
)
"""The failure classes that one execution's own events decide."""


@dataclass(frozen=True, slots=True)
class Examination:
    """What one execution's examination found."""

    execution: DueExecution
    summaries: list[PairSummary]
    findings: Findings
    threshold_versions: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a project's thresholds say to the detectors, and their versions by failure class."""

    grounding: Thresholds
    fire_modes: Collection[str]
    versions: Mapping[str, int]

    @classmethod
    def of(cls, project_pk: int, settings: Mapping[tuple[int, str], Values]) -> "Limits":
        """Read the settings of one project."""
        grounding = settings.get((project_pk, grounding_failure.NAME), NOTHING_SET)
        timeouts = settings.get((project_pk, hitl_timeout.NAME), NOTHING_SET)
        return cls(
            Thresholds.from_values(grounding.values, grounding.version),
            hitl_timeout.FIRE_MODES.in_force(timeouts.values),
            {grounding_failure.NAME: grounding.version, hitl_timeout.NAME: timeouts.version},
        )


def examine_due(database: Database, *, settle_s: float, limit: int = BATCH) -> int:
    """Examine one batch of executions that are due and return how many there were.

    Raises:
        UnavailableError: the database cannot be used; the executions stay due.
    """
    with database.transaction() as connection:
        claimed = due_work.claim_due(connection, settle_s=settle_s, limit=limit)
        due = _within_bounds(connection, claimed)
        decided = _examine(connection, due) if due else set()
    spikes.look(database, decided)
    return len(due)


def _within_bounds(connection: Connection, claimed: list[DueExecution]) -> list[DueExecution]:
    """Take as many of the claimed as have few enough events together; the others stay due."""
    counts = events.count_for_detectors(connection, [one.pk for one in claimed])
    totals = accumulate(counts.get(one.pk, 0) for one in claimed)
    return [
        one
        for place, (one, total) in enumerate(zip(claimed, totals, strict=True))
        if place == 0 or total <= MAX_EVENTS
    ]


def examine_one(database: Database, *, settle_s: float) -> bool:
    """Examine the execution that is due first; one that cannot be examined is put off, and logged.

    Returns:
        False if none is due.

    Raises:
        UnavailableError: as `examine_due`.
    """
    decided: set[int] = set()
    with database.transaction() as connection:
        due = due_work.claim_due(connection, settle_s=settle_s, limit=1)
        for execution in due:
            try:
                with savepoint(connection):
                    decided = _examine(connection, due)
            except UnavailableError:
                raise
            except Exception:
                due_work.put_off(connection, execution.pk)
                logger.exception("execution %s cannot be examined; put off", execution.execution_id)
    spikes.look(database, decided)
    return bool(due)


def _examine(connection: Connection, due: list[DueExecution]) -> set[int]:
    """Examine executions; return the projects in whose executions a person had a say."""
    project_pks = {execution.project_pk for execution in due}
    observed = events.for_detectors(connection, [execution.pk for execution in due])
    settings = thresholds.all_in_force(connection, project_pks)
    limits = {pk: Limits.of(pk, settings) for pk in project_pks}
    examinations = [_run(one, observed[one.pk], limits[one.project_pk]) for one in due]
    names = projects.public_ids(connection, project_pks)
    rows = [row for examination in examinations for row in _rows(examination, names)]
    occurrences.replace(connection, [execution.pk for execution in due], rows, CLASSES)
    due_work.mark_examined(connection, [_mark(examination) for examination in examinations])
    failing = {row.execution_pk for row in rows if row.failure_class == grounding_failure.NAME}
    assessing.note_examined(connection, [(one.pk, one.pk in failing) for one in due])
    # Last: pairs are counted with it, and the counts of the busiest are every worker's.
    rollups.replace(
        connection,
        [
            rollups.Examined(e.execution.pk, e.execution.project_pk, e.summaries)
            for e in examinations
        ],
    )
    # Its own count of what finds the queue full is such a row, too.
    judge_work.queue(connection, [one.pk for one in due])
    return {one.project_pk for one in due if observed[one.pk].interventions}


def _run(execution: DueExecution, observed: Observed, limits: Limits) -> Examination:
    """Run every detector that looks at one execution alone."""
    summaries = grounding_failure.summarise(observed.scores)
    findings = _together(
        grounding_failure.judge(summaries, limits.grounding),
        validator_failures.detect(observed.validators),
        hitl_timeout.detect(observed.interventions, limits.fire_modes),
        crashes.detect(execution.status, execution.crash_signature),
    )
    return Examination(execution, summaries, findings, limits.versions)


def _together(*parts: Findings) -> Findings:
    return Findings(
        found=tuple(finding for part in parts for finding in part.found),
        overflow=sum(part.overflow for part in parts),
        overflow_signatures=tuple(s for part in parts for s in part.overflow_signatures),
    )


def _rows(examination: Examination, project_ids: Mapping[int, str]) -> Iterable[OccurrenceRow]:
    execution = examination.execution
    for finding in examination.findings.found:
        yield OccurrenceRow.of(
            finding,
            project_ids[execution.project_pk],
            project_pk=execution.project_pk,
            execution_pk=execution.pk,
            threshold_version=examination.threshold_versions.get(finding.failure_class, 0),
            occurred_at=execution.received_at,
            release=execution.release,
            environment=execution.environment,
        )


def _mark(examination: Examination) -> due_work.ExaminedRow:
    findings = examination.findings
    return due_work.ExaminedRow(
        examination.execution.pk, findings.overflow, list(findings.overflow_signatures)
    )

"""The examination: an execution's events and its project's thresholds in, occurrences out.

One transaction a batch of executions. Running it twice changes nothing; a batch that dies leaves its executions due.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from detectors import (
    Finding,
    Findings,
    PairSummary,
    Thresholds,
    crashes,
    grounding_failure,
    group_id,
    hitl_timeout,
    validator_failures,
)
from mesedi_server.store import events, executions, occurrences, projects, rollups, thresholds
from mesedi_server.store.database import Connection, Database
from mesedi_server.store.events import Observed
from mesedi_server.store.executions import DueExecution
from mesedi_server.store.occurrences import OccurrenceRow
from mesedi_server.store.thresholds import NOTHING_SET, Values

BATCH = 500
"""Executions that one transaction examines."""

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


def examine_due(database: Database, *, settle_s: float, limit: int = BATCH) -> int:
    """Examine one batch of executions that are due and return how many there were.

    Raises:
        UnavailableError: the database cannot be used; the executions stay due.
    """
    with database.transaction() as connection:
        due = executions.claim_due(connection, settle_s=settle_s, limit=limit)
        if due:
            _examine(connection, due)
    return len(due)


def _examine(connection: Connection, due: list[DueExecution]) -> None:
    project_pks = {execution.project_pk for execution in due}
    observed = events.for_detectors(connection, [execution.pk for execution in due])
    settings = thresholds.all_in_force(connection, project_pks)
    examinations = [examine(one, observed[one.pk], settings) for one in due]
    rollups.replace(
        connection,
        [
            rollups.Examined(e.execution.pk, e.execution.project_pk, e.summaries)
            for e in examinations
        ],
    )
    names = projects.public_ids(connection, project_pks)
    rows = [row for examination in examinations for row in _rows(examination, names)]
    occurrences.replace(connection, [execution.pk for execution in due], rows, CLASSES)
    executions.mark_examined(connection, [_mark(examination) for examination in examinations])


def examine(
    execution: DueExecution, observed: Observed, settings: Mapping[tuple[int, str], Values]
) -> Examination:
    """Run every detector that looks at one execution alone."""
    grounding = settings.get((execution.project_pk, grounding_failure.NAME), NOTHING_SET)
    timeouts = settings.get((execution.project_pk, hitl_timeout.NAME), NOTHING_SET)
    summaries = grounding_failure.summarise(observed.scores)
    findings = _together(
        grounding_failure.judge(
            summaries, Thresholds.from_values(grounding.values, grounding.version)
        ),
        validator_failures.detect(observed.validators),
        hitl_timeout.detect(
            observed.interventions, hitl_timeout.FIRE_MODES.in_force(timeouts.values)
        ),
        crashes.detect(execution.status, execution.crash_signature),
    )
    versions = {
        grounding_failure.NAME: grounding.version,
        hitl_timeout.NAME: timeouts.version,
    }
    return Examination(execution, summaries, findings, versions)


def _together(*parts: Findings) -> Findings:
    return Findings(
        found=tuple(finding for part in parts for finding in part.found),
        overflow=sum(part.overflow for part in parts),
        overflow_signatures=tuple(s for part in parts for s in part.overflow_signatures),
    )


def _rows(examination: Examination, project_ids: Mapping[int, str]) -> Iterable[OccurrenceRow]:
    execution = examination.execution
    for finding in examination.findings.found:
        yield OccurrenceRow(
            project_pk=execution.project_pk,
            execution_pk=execution.pk,
            group_id=_group_id(project_ids[execution.project_pk], finding),
            failure_class=finding.failure_class,
            signature=finding.signature,
            evaluator_id=finding.evaluator_id,
            metric_type=finding.metric_type,
            severity=finding.severity,
            rule=finding.rule,
            evidence=finding.evidence,
            threshold_version=examination.threshold_versions.get(finding.failure_class, 0),
            occurred_at=execution.received_at,
            release=execution.release,
            environment=execution.environment,
        )


def _group_id(project_id: str, finding: Finding) -> str:
    return group_id(project_id, finding.failure_class, finding.signature, finding.evaluator_id)


def _mark(examination: Examination) -> executions.ExaminedRow:
    findings = examination.findings
    return executions.ExaminedRow(
        examination.execution.pk, findings.overflow, list(findings.overflow_signatures)
    )

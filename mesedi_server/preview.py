"""Previews: what other floors would have done to the executions of the last days.

Judged are the stored rollups, by the detector's own rule, once with the floors in force and once with the proposed
ones. Only executions with a mean between the two floors of its pair can differ, so only those are read.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from detectors import Findings, Thresholds, grounding_failure, group_id
from mesedi_server.errors import RefusedError
from mesedi_server.store import rollups, thresholds
from mesedi_server.store.database import Connection
from mesedi_server.store.projects import Project

SHOWN = 100
"""Executions and groups that a preview names; it counts them all."""

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Turn:
    """An execution that would start or stop firing, and for which pairs."""

    execution_id: str
    pairs: list[Pair]


@dataclass(frozen=True, slots=True)
class GroupTurn:
    """A group that would open or fall silent within the days looked at."""

    group_id: str
    evaluator_id: str
    metric_type: str
    executions: int


@dataclass(frozen=True, slots=True)
class Preview:
    """What a change would do."""

    days: int
    examined: int
    starting: list[Turn]
    stopping: list[Turn]
    groups_opening: list[GroupTurn]
    groups_falling_silent: list[GroupTurn]


def of_change(
    connection: Connection, project: Project, detector: str, values: Mapping[str, Any], days: int
) -> Preview:
    """Judge the last days by other values; a value of None is the reset of its knob.

    Raises:
        RefusedError: the detector has nothing to preview.
    """
    if detector != grounding_failure.NAME:
        raise RefusedError(f"{detector} has no preview; {grounding_failure.NAME} has")
    current = thresholds.in_force(connection, project.pk, detector)
    overlaid = {**current.values, **values}
    proposed = {key: value for key, value in overlaid.items() if value is not None}
    before = Thresholds.from_values(current.values, current.version)
    after = Thresholds.from_values(proposed, current.version + 1)
    return _compare(connection, project, before, after, days)


def content(preview: Preview) -> dict[str, Any]:
    """Give a preview the form that the API answers."""
    return {
        "days": preview.days,
        "executions_examined": preview.examined,
        "executions_starting": len(preview.starting),
        "executions_stopping": len(preview.stopping),
        "starting": preview.starting[:SHOWN],
        "stopping": preview.stopping[:SHOWN],
        "groups_opening": preview.groups_opening[:SHOWN],
        "groups_falling_silent": preview.groups_falling_silent[:SHOWN],
    }


def _compare(
    connection: Connection, project: Project, before: Thresholds, after: Thresholds, days: int
) -> Preview:
    starting, stopping = [], []
    for execution in rollups.between_floors(connection, project.pk, before, after, days):
        fired = _pairs(grounding_failure.judge(execution.summaries, before))
        fires = _pairs(grounding_failure.judge(execution.summaries, after))
        if fires - fired:
            starting.append(Turn(execution.execution_id, sorted(fires - fired)))
        if fired - fires:
            stopping.append(Turn(execution.execution_id, sorted(fired - fires)))
    changed = {pair for turn in (*starting, *stopping) for pair in turn.pairs}
    firing_before = rollups.count_firing(connection, project.pk, before, changed, days)
    firing_after = rollups.count_firing(connection, project.pk, after, changed, days)
    return Preview(
        days=days,
        examined=rollups.count_executions(connection, project.pk, days),
        starting=starting,
        stopping=stopping,
        groups_opening=_turned(project, firing_before, firing_after),
        groups_falling_silent=_turned(project, firing_after, firing_before),
    )


def _turned(project: Project, without: Counter[Pair], having: Counter[Pair]) -> list[GroupTurn]:
    """Name the pairs that fire on one side alone, those of the most executions first."""
    return [
        GroupTurn(_group_id(project, pair), *pair, executions)
        for pair, executions in having.most_common()
        if not without[pair]
    ]


def _group_id(project: Project, pair: Pair) -> str:
    signature = f"{grounding_failure.NAME}:{pair[0]}:{pair[1]}"
    return group_id(project.project_id, grounding_failure.NAME, signature, pair[0])


def _pairs(findings: Findings) -> set[Pair]:
    return {(finding.evaluator_id, finding.metric_type) for finding in findings.found}

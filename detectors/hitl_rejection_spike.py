"""hitl_rejection_spike: people turn down, or rewrite, too much of what a project's agents propose.

A property of a project's recent executions, not of one of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from typing import NamedTuple

from detectors.events import HumanIntervention
from detectors.exact import exact
from detectors.findings import Finding, Severity
from detectors.knobs import Bounds, FloatKnob, IntKnob

NAME = "hitl_rejection_spike"
DESCRIPTION = "People reject or edit a large share of what the project's agents propose."
EVENT_TYPE = "human_intervention"
SEVERITY: Severity = "warning"  # wire.md 6.4

MEASUREMENT_WINDOW_MINUTES = IntKnob(
    name="measurement_window_minutes",
    default=60,
    bounds=Bounds(5, 1440),
    description="How far back decisions count, in minutes.",
)
MIN_SAMPLE = IntKnob(
    name="min_sample",
    default=5,
    bounds=Bounds(1, 10_000),
    description="Executions with a decision that the window must hold before a rate counts.",
)
REJECTED_RATE = FloatKnob(
    name="rejected_rate",
    default=0.40,
    bounds=Bounds(0, 1, above_lowest=True),
    description="The share of executions with a rejection that is a spike.",
)
EDITED_RATE = FloatKnob(
    name="edited_rate",
    default=0.30,
    bounds=Bounds(0, 1, above_lowest=True),
    description="The share of executions with an edit that is a spike.",
)
KNOBS = (MEASUREMENT_WINDOW_MINUTES, MIN_SAMPLE, REJECTED_RATE, EDITED_RATE)

REJECTED = "rejected"
EDITED = "edited"

# Nobody decided: such an event must not make the share of rejections look smaller.
_NO_DECISION = frozenset({"", "timeout", "cancelled"})


@dataclass(frozen=True, slots=True)
class SpikeThresholds:
    """The settings in force in a project; `version` 0 is that of a project without settings."""

    measurement_window_minutes: int = MEASUREMENT_WINDOW_MINUTES.default
    min_sample: int = MIN_SAMPLE.default
    rejected_rate: float = REJECTED_RATE.default
    edited_rate: float = EDITED_RATE.default
    version: int = 0

    @classmethod
    def from_values(cls, values: Mapping[str, object], version: int) -> "SpikeThresholds":
        """Read stored knob values; what is not allowed (any more) falls back to the default."""
        return cls(
            measurement_window_minutes=MEASUREMENT_WINDOW_MINUTES.in_force(values),
            min_sample=MIN_SAMPLE.in_force(values),
            rejected_rate=REJECTED_RATE.in_force(values),
            edited_rate=EDITED_RATE.in_force(values),
            version=version,
        )


class Spike(NamedTuple):
    """A finding about a project, and the executions whose human rejected or edited."""

    finding: Finding
    members: tuple[str, ...]


def decided_within(
    interventions: Iterable[HumanIntervention], until: datetime, window_minutes: int
) -> list[HumanIntervention]:
    """Return the interventions of the last `window_minutes` before `until`, both ends included."""
    since = until - timedelta(minutes=window_minutes)
    return [i for i in interventions if since <= i.effective_at <= until]


def detect(interventions: Iterable[HumanIntervention], thresholds: SpikeThresholds) -> list[Spike]:
    """Find the spikes among the interventions of one window: rejected first, then edited.

    Counted are executions, not events; a rate that is reached is a spike, exactly: 2 of 5 is 0.40
    (detectors.md, hitl_rejection_spike).

    >>> from datetime import UTC, datetime
    >>> noon = datetime(2026, 12, 1, 12, tzinfo=UTC)
    >>> kinds = ["approved", "rejected", "approved", "rejected", "approved"]
    >>> decisions = [
    ...     HumanIntervention(f"evt-{n}", 0, noon, f"exec-{n}", f"hitl-{n}", kind)
    ...     for n, kind in enumerate(kinds)
    ... ]
    >>> [(spike.finding.signature, spike.members) for spike in detect(decisions, SpikeThresholds())]
    [('hitl_rejection_spike:rejected', ('exec-1', 'exec-3'))]
    """
    decisions = [i for i in interventions if i.response_kind not in _NO_DECISION]
    sample = {i.execution_id for i in decisions}
    if not sample or len(sample) < thresholds.min_sample:
        return []
    spikes = []
    for kind, rate in ((REJECTED, thresholds.rejected_rate), (EDITED, thresholds.edited_rate)):
        members = {i.execution_id for i in decisions if i.response_kind == kind}
        if Fraction(len(members), len(sample)) >= exact(rate):
            finding = _finding(kind, rate, len(members), len(sample), thresholds)
            spikes.append(Spike(finding, tuple(sorted(members))))
    return spikes


def _finding(
    kind: str, rate: float, affected: int, sample: int, thresholds: SpikeThresholds
) -> Finding:
    return Finding(
        failure_class=NAME,
        signature=f"{NAME}:{kind}",
        rule=kind,
        severity=SEVERITY,
        evidence={
            "rule": kind,
            "executions": affected,
            "sample": sample,
            "rate": affected / sample,
            "rate_threshold": rate,
            "min_sample": thresholds.min_sample,
            "measurement_window_minutes": thresholds.measurement_window_minutes,
            "threshold_version": thresholds.version,
        },
    )

"""hitl_timeout: nobody answered the agent, or the answer came too late."""

from collections.abc import Collection, Iterable, Sequence

from detectors.events import EVENT_ORDER, HumanIntervention
from detectors.findings import Finding, Findings, JsonValue, Severity
from detectors.knobs import ChoicesKnob

NAME = "hitl_timeout"
DESCRIPTION = "A person did not answer an agent's question in time."
EVENT_TYPE = "human_intervention"
SEVERITY: Severity = "warning"  # wire.md 6.4

EXPLICIT = "explicit"
SLA_EXCEEDED = "sla_exceeded"

FIRE_MODES = ChoicesKnob(
    name="fire_modes",
    default=[EXPLICIT, SLA_EXCEEDED],
    choices=(EXPLICIT, SLA_EXCEEDED),
    description="What counts: a wait that the client ended (explicit),"
    " an answer after the agreed time (sla_exceeded).",
)
KNOBS = (FIRE_MODES,)

MAX_REQUESTS = 3
"""Request ids that are kept of each finding."""


def detect(
    interventions: Iterable[HumanIntervention],
    fire_modes: Collection[str] = (EXPLICIT, SLA_EXCEEDED),
) -> Findings:
    """Find what one execution waited for in vain: each mode once, explicit first.

    The agreed time is exceeded by a wait that is longer, not by one that is as long (detectors.md,
    hitl_timeout).

    >>> from datetime import UTC, datetime
    >>> noon = datetime(2026, 12, 1, 12, tzinfo=UTC)
    >>> approval = HumanIntervention("evt-1", 0, noon, "exec-1", "hitl-1", "approved")
    >>> late = approval._replace(wait_duration_ms=60_001, sla_seconds=60)
    >>> [finding.signature for finding in detect([late]).found]
    ['hitl_timeout:sla_exceeded']
    """
    ordered = sorted(interventions, key=EVENT_ORDER)
    timeouts = [i for i in ordered if i.response_kind == "timeout"]
    late = [i for i in ordered if _overrun_ms(i) > 0]
    findings = [
        _finding(mode, caught)
        for mode, caught in ((EXPLICIT, timeouts), (SLA_EXCEEDED, late))
        if caught and mode in fire_modes
    ]
    return Findings.capped(findings)


def _overrun_ms(intervention: HumanIntervention) -> int:
    wait_ms, sla_s = intervention.wait_duration_ms, intervention.sla_seconds
    if wait_ms is None or sla_s is None or sla_s <= 0:
        return 0
    return wait_ms - sla_s * 1000


def _finding(mode: str, caught: Sequence[HumanIntervention]) -> Finding:
    worst = max(caught, key=lambda i: (_overrun_ms(i), i.wait_duration_ms or 0))
    requests: list[JsonValue] = [i.request_id for i in caught[:MAX_REQUESTS]]
    return Finding(
        failure_class=NAME,
        signature=f"{NAME}:{mode}",
        rule=mode,
        severity=SEVERITY,
        evidence={
            "rule": mode,
            "interventions": len(caught),
            "wait_duration_ms": worst.wait_duration_ms,
            "sla_seconds": worst.sla_seconds,
            "request_ids": requests,
        },
    )

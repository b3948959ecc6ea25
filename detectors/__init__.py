"""Detectors: an execution's events and the thresholds in force go in, findings come out.

Pure functions on the standard library alone: no database, clock, network or framework. The same
input gives the same findings, in the same order. One module a failure class:

    from detectors import grounding_failure

    findings = grounding_failure.detect(scores, Thresholds())
"""

from detectors import (
    crashes,
    grounding_failure,
    hitl_rejection_spike,
    hitl_timeout,
    validator_failures,
)
from detectors.events import EvalScore, HumanIntervention, ValidatorResult
from detectors.findings import MAX_FINDINGS, Finding, Findings, JsonValue, Severity, group_id
from detectors.grounding_failure import Floor, PairSummary, Thresholds
from detectors.hitl_rejection_spike import Spike, SpikeThresholds
from detectors.knobs import Bounds, Knob, KnobError
from detectors.registry import DETECTORS, EVENT_TYPES, Detector

__all__ = [
    "DETECTORS",
    "EVENT_TYPES",
    "MAX_FINDINGS",
    "Bounds",
    "Detector",
    "EvalScore",
    "Finding",
    "Findings",
    "Floor",
    "HumanIntervention",
    "JsonValue",
    "Knob",
    "KnobError",
    "PairSummary",
    "Severity",
    "Spike",
    "SpikeThresholds",
    "Thresholds",
    "ValidatorResult",
    "crashes",
    "grounding_failure",
    "group_id",
    "hitl_rejection_spike",
    "hitl_timeout",
    "validator_failures",
]

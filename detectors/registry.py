"""The detectors that a project can tune, by name, and the event types that detectors read."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from detectors import grounding_failure, hitl_rejection_spike, hitl_timeout, validator_failures
from detectors.knobs import Knob


@dataclass(frozen=True, slots=True)
class Detector:
    """A detector with at least one knob, as API, form and docs show it."""

    name: str
    description: str
    knobs: Mapping[str, Knob[Any]]


def _detector(name: str, description: str, knobs: tuple[Knob[Any], ...]) -> Detector:
    return Detector(name, description, MappingProxyType({knob.name: knob for knob in knobs}))


DETECTORS: Mapping[str, Detector] = MappingProxyType(
    {
        module.NAME: _detector(module.NAME, module.DESCRIPTION, module.KNOBS)
        for module in (grounding_failure, hitl_rejection_spike, hitl_timeout)
    }
)
"""Every detector that has a knob, by its name."""

EVENT_TYPES: frozenset[str] = frozenset(
    module.EVENT_TYPE
    for module in (grounding_failure, hitl_rejection_spike, hitl_timeout, validator_failures)
)
"""The event types that some detector reads; an event of another type changes no finding."""

"""What a form changes of a detector's settings, and how that is kept."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from detectors import Detector, Knob, grounding_failure
from detectors.knobs import PairMapKnob
from mesedi_server.errors import ConflictError, NotFoundError
from mesedi_server.pages.access import Visit
from mesedi_server.pages.fields import Field
from mesedi_server.schemas.lenient_json import storable
from mesedi_server.schemas.thresholds import checked
from mesedi_server.store import thresholds
from mesedi_server.store.thresholds import Values


def wanted(fields: Iterable[Field]) -> dict[str, Any]:
    """Read what a form asks for, by knob; None asks for the default.

    Raises:
        RefusedError: a field has a value that its knob does not take.
    """
    return {field.knob.name: field.value() for field in fields}


def suggested(
    detector: Detector, values: Mapping[str, Any], asked: Mapping[str, str]
) -> dict[str, Any] | None:
    """Overlay settings with the floor of a pair that an address asks for; None: it asks for none that can be."""
    knob = detector.knobs.get(grounding_failure.PER_EVALUATOR_FLOORS.name)
    pair, floor = unquote(asked.get("pair", "")), asked.get("floor", "")
    try:
        if not isinstance(knob, PairMapKnob) or not pair:
            return None
        floors = {**knob.good_entries(values), storable(pair): float(floor)}
        return {**values, knob.name: knob.check(floors)}
    except ValueError:
        return None


def changes(detector: Detector, values: Values, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of what is wanted that is not in force already."""
    return {
        key: value
        for key, value in wanted.items()
        if _differs(detector.knobs[key], values.values, value)
    }


def check_version(values: Values, seen_version: str) -> None:
    """Make sure that the form was made from the settings in force.

    Raises:
        ConflictError: they have changed since.
    """
    if seen_version != str(values.version):
        raise ConflictError(
            "somebody changed these settings while your form was open: see the history below."
            " The form still shows what you entered; saving it again replaces theirs"
        )


def keep(
    visit: Visit, detector: str, values: Values, changes: Mapping[str, Any], reason: str | None
) -> None:
    """Write changes, a version each.

    Raises:
        ConflictError: somebody else wrote at the same moment; nothing may be committed.
    """
    for expected, (key, value) in enumerate(changes.items(), start=values.version + 1):
        version = thresholds.change(
            visit.connection,
            visit.project.pk,
            detector,
            key,
            value,
            changed_by=visit.actor,
            reason=reason,
        )
        if version != expected:
            raise ConflictError("somebody changed these settings at the same moment; try again")


def earlier_value(visit: Visit, detector: str, knob: Knob[Any], version: int) -> Any:
    """Return what a knob was set to in a version; None: the default.

    Raises:
        NotFoundError: that version did not change this knob, or lies too far back.
        RefusedError: the value is not allowed any more.
    """
    for change in thresholds.history(visit.connection, visit.project.pk, detector, knob.name):
        if change.version == version:
            return None if change.is_reset else checked(knob, change.value)
    raise NotFoundError(f"version {version} of {knob.name}")


def _differs(knob: Knob[Any], values: Mapping[str, Any], wanted: Any) -> bool:
    if knob.name in values:
        return bool(wanted != knob.stored_in(values))
    return wanted is not None and bool(wanted != knob.default)

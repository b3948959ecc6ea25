"""Bodies of the thresholds' calls (wire.md 5); what a value may be is its knob's own business."""

from typing import Any

from marshmallow import RAISE, Schema, fields, validate

from detectors import DETECTORS, Detector, Knob, KnobError
from mesedi_server.errors import NotFoundError, RefusedError

MAX_DAYS = 90
"""Days that a preview may look back."""


class _NewValue(Schema):
    class Meta:
        unknown = RAISE

    value = fields.Raw(required=True, allow_none=True)
    reason = fields.String(allow_none=True, load_default=None)


class _PreviewRequest(Schema):
    class Meta:
        unknown = RAISE

    # By knob; null previews the reset.
    values = fields.Dict(keys=fields.String(), values=fields.Raw(allow_none=True), required=True)
    days = fields.Integer(strict=True, load_default=7, validate=validate.Range(1, MAX_DAYS))


NEW_VALUE = _NewValue()
PREVIEW_REQUEST = _PreviewRequest()


def detector(name: str) -> Detector:
    """Find a detector.

    Raises:
        NotFoundError: there is none of this name that can be tuned.
    """
    found = DETECTORS.get(name)
    if found is None:
        raise NotFoundError("detector")
    return found


def knob(detector_name: str, key: str) -> Knob[Any]:
    """Find a knob.

    Raises:
        NotFoundError: the detector, or its knob, is unknown.
    """
    found = detector(detector_name).knobs.get(key)
    if found is None:
        raise NotFoundError("threshold")
    return found


def checked(knob: Knob[Any], value: object) -> Any:
    """Return the value as it is to be stored.

    Raises:
        RefusedError: with the bound that was broken, in words.
    """
    try:
        return knob.check(value)
    except KnobError as error:
        raise RefusedError(str(error)) from error

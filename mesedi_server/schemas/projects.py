"""What a project's settings may be."""

from urllib.parse import urlsplit
from zoneinfo import available_timezones

from marshmallow import RAISE, Schema, ValidationError, fields, validate

from mesedi_server.schemas.flags import Flag
from mesedi_server.schemas.names import Name

UTC = "UTC"
PLACEHOLDER = "{execution_id}"
"""What stands in a trace-URL template for an execution's id."""
MAX_NAME = 80
"""Characters of a project's name (wire.md 1.9)."""
MAX_RETENTION_DAYS = 3650

ZONES = sorted({UTC, *available_timezones()} - {"localtime", "Factory"})
"""The time zones that a project may choose."""


def _check_template(template: str) -> None:
    try:
        address = urlsplit(template)
        is_web = address.scheme in ("http", "https") and bool(address.hostname)
    except ValueError:
        is_web = False
    if not is_web or not template.isprintable() or " " in template:
        raise ValidationError("an address that begins with https:// or http://, please.")
    if PLACEHOLDER in address.netloc or PLACEHOLDER not in template:
        raise ValidationError(f"{PLACEHOLDER} must stand where the execution's id belongs.")


class _ProjectName(Schema):
    class Meta:
        unknown = RAISE

    name = Name(longest=MAX_NAME, shortest=1, required=True)


class _ProjectSettings(_ProjectName):
    time_zone = fields.String(
        required=True, validate=validate.OneOf(ZONES, error="an unknown time zone.")
    )
    trace_url_template = fields.String(
        required=True, allow_none=True, validate=[validate.Length(max=500), _check_template]
    )
    # None: executions are kept for ever.
    retention_days = fields.Integer(
        required=True, allow_none=True, validate=validate.Range(1, MAX_RETENTION_DAYS)
    )
    assesses_all = Flag(required=True)


class _Assessing(Schema):
    class Meta:
        unknown = RAISE

    assesses_all = Flag(required=True)


NAME = _ProjectName()
SETTINGS = _ProjectSettings()
ASSESSING = _Assessing()

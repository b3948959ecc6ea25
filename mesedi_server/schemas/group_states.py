"""Bodies of the calls that change a group's state: all optional; a malformed one is taken for empty."""

import re
from datetime import UTC, datetime
from typing import Any

from marshmallow import EXCLUDE, Schema, ValidationError, fields, validate

from mesedi_server.errors import RefusedError
from mesedi_server.schemas.bodies import load, read_object
from mesedi_server.schemas.flags import Flag
from mesedi_server.schemas.times import UtcTime

MAX_REASON_BYTES = 512

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def _check_future(time: datetime) -> None:
    if time <= datetime.now(UTC):
        raise ValidationError("this time has passed.")


class _Reason(Schema):
    class Meta:
        unknown = EXCLUDE

    reason = fields.String(allow_none=True, load_default=None)


class _Ignore(_Reason):
    until = UtcTime(allow_none=True, load_default=None, validate=_check_future)
    # New members after which the group is open again.
    occurrences = fields.Integer(
        strict=True, allow_none=True, load_default=None, validate=validate.Range(1, 2**31)
    )


class _OverStrict(_Reason):
    over_strict = Flag(load_default=True)


REASON = _Reason()
IGNORE = _Ignore()
OVER_STRICT = _OverStrict()


def read_reason(body: bytes) -> str | None:
    """Read a body of which only the reason counts, and nothing is refused (wire.md 1.9)."""
    try:
        return clean(load(REASON, read_object(body))["reason"])
    except RefusedError:
        return None


def read(schema: Schema, body: bytes) -> dict[str, Any]:
    """Read a body whose fields matter.

    Raises:
        RefusedError: malformed; to ignore for ever what should be ignored for a day would be worse.
    """
    values = load(schema, read_object(body))
    values["reason"] = clean(values["reason"])
    return values


def clean(reason: str | None, max_bytes: int = MAX_REASON_BYTES) -> str | None:
    """Trim a reason, take control characters out, cut it at `max_bytes`; None: nothing is left."""
    if reason is None:
        return None
    text = _CONTROL.sub("", reason.strip())
    return text.encode()[:max_bytes].decode(errors="ignore") or None

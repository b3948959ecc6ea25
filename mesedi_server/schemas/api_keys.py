"""What a new API key may be."""

from datetime import UTC, datetime
from typing import Any

from marshmallow import RAISE, Schema, ValidationError, fields, validate, validates_schema

from mesedi_server.permission import SCOPES
from mesedi_server.schemas.names import Name
from mesedi_server.schemas.times import UtcTime

MAX_NAME = 80
"""Characters of a key's name."""

ROLES = {"admin": ["admin"], "write": ["ingest", "read"], "read": ["read"]}
"""The reference's roles, and the scopes that come nearest."""


def _check_future(time: datetime) -> None:
    if time <= datetime.now(UTC):
        raise ValidationError("this time has passed.")


class _NewKey(Schema):
    class Meta:
        unknown = RAISE

    name = Name(longest=MAX_NAME, load_default="")
    scopes = fields.List(
        fields.String(validate=validate.OneOf(SCOPES)),
        validate=validate.Length(min=1, error="at least one of ingest, read, admin."),
    )
    role = fields.String(validate=validate.OneOf(list(ROLES)))
    expires_at = UtcTime(allow_none=True, load_default=None, validate=_check_future)

    @validates_schema
    def _check_scopes(self, data: dict[str, Any], **_: Any) -> None:
        if "scopes" in data and "role" in data:
            raise ValidationError("either scopes or a role, not both.", "scopes")


NEW_KEY = _NewKey()


def scopes(given: dict[str, Any]) -> list[str]:
    """Return the scopes that a new key asks for; without any, only `ingest`."""
    wanted = given.get("scopes") or ROLES.get(given.get("role", ""), ["ingest"])
    return [scope for scope in SCOPES if scope in wanted]


def role(held: list[str]) -> str:
    """Return the reference's role that comes nearest to some scopes."""
    if "admin" in held:
        return "admin"
    return "write" if "ingest" in held else "read"

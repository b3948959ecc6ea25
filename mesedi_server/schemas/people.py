"""What a person may be called, and be in a project."""

from marshmallow import EXCLUDE, Schema, ValidationError, fields, validate

from mesedi_server.permission import ROLES
from mesedi_server.schemas.names import Name

MAX_NAME = 80
"""Characters of a person's name."""


def check_is_no_key(name: str) -> None:
    """Refuse a name that could be taken for a key's."""
    if name.startswith("key key-"):
        raise ValidationError("this is how histories call API keys.")


class _Person(Schema):
    class Meta:
        unknown = EXCLUDE

    name = Name(longest=MAX_NAME, shortest=1, required=True, validate=check_is_no_key)


class _NewMember(_Person):
    role = fields.String(required=True, validate=validate.OneOf(ROLES))


PERSON = _Person()
MEMBER = _NewMember()

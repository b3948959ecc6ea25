"""Labels on answers, as requests and forms bring them."""

from typing import Any

from marshmallow import EXCLUDE, Schema, ValidationError, fields, validate

from mesedi_server.schemas.bodies import load
from mesedi_server.schemas.events import MAX_NAME_BYTES
from mesedi_server.schemas.group_states import clean
from mesedi_server.schemas.names import Name
from mesedi_server.schemas.people import check_is_no_key

SAID = ("correct", "wrong", "evaluator_wrong")
"""What can be said of an answer."""
MAX_BY = 200
"""Characters of the name of who gave a label."""
MAX_NOTE_BYTES = 4_000
"""Bytes of a note; the rest is cut."""


def can_be_labelled(answer_id: str) -> bool:
    """Tell whether an answer's id is short enough for a label to name it."""
    return len(answer_id.encode()) <= MAX_NAME_BYTES


def _check_length(answer_id: str) -> None:
    if not can_be_labelled(answer_id):
        raise ValidationError(
            f"answers whose id is longer than {MAX_NAME_BYTES} bytes cannot be labelled."
        )


class _Label(Schema):
    class Meta:
        unknown = EXCLUDE

    answer_id = fields.String(required=True, validate=_check_length)
    label = fields.String(required=True, validate=validate.OneOf(SAID))
    note = fields.String(allow_none=True, load_default=None)
    # The person whose word a key passes on; without one it is the key's own.
    by = Name(
        longest=MAX_BY, shortest=1, allow_none=True, load_default=None, validate=check_is_no_key
    )


LABEL = _Label()


def read(given: dict[str, Any]) -> dict[str, Any]:
    """Read a label: `answer_id`, `label`, `note`, `by`.

    Raises:
        RefusedError: an unknown label, or an answer that cannot be named.
    """
    values = load(LABEL, given)
    values["note"] = clean(values["note"], MAX_NOTE_BYTES)
    return values

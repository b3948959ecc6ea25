"""Request bodies that are one JSON object, validated by a marshmallow schema."""

from typing import Any

import msgspec
from marshmallow import Schema, ValidationError

from mesedi_server.errors import FieldsRefusedError, RefusedError
from mesedi_server.schemas import lenient_json


def read_object(body: bytes, *, is_finite: bool = False) -> dict[str, Any]:
    """Read a JSON object; an empty body is an empty object.

    Args:
        body: what came.
        is_finite: as of `lenient_json.parse`. In most bodies null takes a limit away, which NaN must not do.

    Raises:
        RefusedError: not JSON, or no object.
    """
    value = _parse(body, is_finite=is_finite) if body.strip() else {}
    if not isinstance(value, dict):
        raise RefusedError("the body must be a JSON object")
    return value


def load(schema: Schema, values: dict[str, Any]) -> dict[str, Any]:
    """Validate an object; unknown fields are left out or refused, as the schema says.

    Raises:
        FieldsRefusedError: with each field's fault in words.
    """
    try:
        loaded: dict[str, Any] = schema.load(values)
    except ValidationError as error:
        faults = {name: _in_words(fault) for name, fault in error.messages_dict.items()}
        raise FieldsRefusedError(faults) from error
    return loaded


def _parse(body: bytes, *, is_finite: bool) -> Any:
    if b"\\u0000" not in body:
        try:
            return msgspec.json.decode(body)
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            pass  # read again below, leniently
    try:
        return lenient_json.parse(body, is_finite=is_finite)
    except (lenient_json.NotJsonError, lenient_json.TooDeepError) as error:
        raise RefusedError(f"the body is not JSON: {error}") from error


def _in_words(messages: Any) -> str:
    if isinstance(messages, dict):
        return "; ".join(f"{name}: {_in_words(fault)}" for name, fault in messages.items())
    if isinstance(messages, list):
        return " ".join(_in_words(message) for message in messages)
    return str(messages)

"""`POST /executions` and `PATCH /executions/{id}`. Source: `wire.md` 1.4, 1.5 and 3."""

from typing import Any

from marshmallow import EXCLUDE, Schema, ValidationError, fields, post_load, validate

from mesedi_server.errors import RefusedError
from mesedi_server.schemas import execution_ids, lenient_json
from mesedi_server.schemas.events import MAX_NAME_BYTES
from mesedi_server.schemas.times import UtcTime

TERMINAL = frozenset({"completed", "crashed", "halted", "timeout", "validation_failed"})
"""Statuses that close an execution when a PATCH brings them."""
STARTED = "started"
OPEN = frozenset({STARTED, "awaiting_human"})
"""Statuses of an execution that goes on."""

MAX_TEXT = 32_768
"""Characters of a crash's signature or a summary; what goes beyond is cut off."""

_INT64 = validate.Range(min=-(2**63), max=2**63 - 1)


def check_name(value: str) -> None:
    """Refuse what cannot be an id: empty, too long, or with characters that were replaced."""
    if not value:
        raise ValidationError("must not be empty.")
    if len(value.encode()) > MAX_NAME_BYTES:
        raise ValidationError(f"longer than {MAX_NAME_BYTES} bytes.")
    if "\ufffd" in value:
        raise ValidationError("has a NUL, a lone surrogate or broken UTF-8 in it.")


def check_execution_id(value: str) -> None:
    """Refuse what cannot be an execution's id, or would have no address."""
    check_name(value)
    if (fault := execution_ids.fault(value)) is not None:
        raise ValidationError(f"{fault}.")


def check_id(execution_id: str) -> None:
    """Refuse an execution id from an address that could not be stored.

    Raises:
        RefusedError: it is too long, or one that no execution may have.
    """
    try:
        check_execution_id(lenient_json.storable(execution_id))
    except ValidationError as error:
        raise RefusedError(f"execution_id: {error.messages[0]}") from error


def _check_status(value: str) -> None:
    if value:
        check_name(value)


def _check_length(value: str) -> None:
    if len(value.encode()) > MAX_NAME_BYTES:
        raise ValidationError(f"longer than {MAX_NAME_BYTES} bytes.")


class _Label(fields.String):
    """A short text: a version, a name, another execution's id."""

    def __init__(self) -> None:
        super().__init__(allow_none=True, validate=_check_length)


class _Text(fields.String):
    """A text that may be long, and is cut where it is too long: its execution matters more than its end."""

    def __init__(self) -> None:
        super().__init__(allow_none=True)

    def _deserialize(self, *args: Any, **kwargs: Any) -> Any:
        value = super()._deserialize(*args, **kwargs)
        return value and value[:MAX_TEXT]


class _Duration(fields.Integer):
    """Milliseconds; fewer than none, as from a clock that was set back, are not known."""

    def _deserialize(self, *args: Any, **kwargs: Any) -> Any:
        value = super()._deserialize(*args, **kwargs)
        if value is None or value < 0:
            return None
        _INT64(value)
        return value


class _Facts(Schema):
    """What POST and PATCH may both say."""

    class Meta:
        unknown = EXCLUDE

    ended_at = UtcTime(allow_none=True)
    duration_ms = _Duration(strict=True, allow_none=True)
    total_tokens_in = fields.Integer(strict=True, allow_none=True, validate=_INT64)
    total_tokens_out = fields.Integer(strict=True, allow_none=True, validate=_INT64)
    estimated_cost_usd = fields.Float(allow_none=True)
    crash_signature = _Text()
    input_summary = _Text()
    output_summary = _Text()
    release = _Label()
    environment = _Label()


class NewExecution(_Facts):
    """Body of `POST /executions`: any status is taken, terminal ones included."""

    execution_id = fields.String(required=True, validate=check_execution_id)
    status = fields.String(load_default=STARTED, allow_none=True, validate=_check_status)
    started_at = UtcTime(allow_none=True)
    project_id = fields.String(allow_none=True)
    parent_execution_id = _Label()
    tenant_id = _Label()
    sdk_language = _Label()
    sdk_version = _Label()

    @post_load
    def _default_status(self, facts: dict[str, Any], **_options: Any) -> dict[str, Any]:
        return {**facts, "status": facts["status"] or STARTED}


class ExecutionChange(_Facts):
    """Body of `PATCH /executions/{id}`."""

    status = fields.String(required=True, validate=validate.OneOf(sorted(OPEN | TERMINAL)))


NEW_EXECUTION = NewExecution()
EXECUTION_CHANGE = ExecutionChange()

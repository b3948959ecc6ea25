"""Query strings of lists: pages and filters."""

from typing import Any

from flask import request
from marshmallow import EXCLUDE, Schema, fields, validate

from mesedi_server.errors import RefusedError
from mesedi_server.schemas.bodies import load
from mesedi_server.schemas.judges import MAX_DAYS, USUAL_DAYS
from mesedi_server.schemas.lenient_json import storable
from mesedi_server.schemas.times import UtcTime
from mesedi_server.store.failure_groups import NEEDS_SOMEBODY, STATES, State
from mesedi_server.store.paging import Paging

MAX_LIMIT = 200
"""Rows a page may have; a larger wish gets this many."""
DEFAULT_LIMIT = 50
"""Rows of a page where none are asked for."""


class _Page(Schema):
    class Meta:
        unknown = EXCLUDE

    limit = fields.Integer(load_default=DEFAULT_LIMIT)
    cursor = fields.String()


class _Time(UtcTime):
    """A time with or without zone. A plus sign may have come as a blank."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        text = value.replace(" ", "+") if isinstance(value, str) and "T" in value else value
        return super()._deserialize(text, attr, data, **kwargs)


class _Filter(_Page):
    q = fields.String(validate=validate.Length(max=256))
    evaluator = fields.String()
    metric = fields.String()
    since = _Time()
    until = _Time()
    release = fields.String()
    environment = fields.String()


class _Executions(_Filter):
    status = fields.String()


class _FailureGroups(_Filter):
    failure_class = fields.String()
    state = fields.String()
    include_resolved = fields.Boolean()


class _Earlier(Schema):
    class Meta:
        unknown = EXCLUDE

    days = fields.Integer(load_default=USUAL_DAYS, validate=validate.Range(1, MAX_DAYS))


# The names that these facts have in the answers.
_ALIASES = {
    "class": "failure_class",
    "evaluator_id": "evaluator",
    "metric_type": "metric",
}

PAGE = _Page()
EXECUTIONS = _Executions()
FAILURE_GROUPS = _FailureGroups()
EARLIER = _Earlier()


def read(schema: Schema) -> dict[str, Any]:
    """Read the query string; empty fields count as absent, unknown ones are left out.

    Raises:
        RefusedError: a value of the wrong type.
    """
    given = {
        _ALIASES.get(name, name): storable(value)
        for name, value in request.args.items()
        if value != ""
    }
    return load(schema, given)


def paging(query: dict[str, Any]) -> Paging:
    """Take the page's part out of a query; limits out of range are clamped."""
    return Paging(max(1, min(query.pop("limit"), MAX_LIMIT)), query.pop("cursor", None))


def states(query: dict[str, Any]) -> tuple[State, ...]:
    """Take the states out of a query: a list with commas, `all`, or the default.

    Raises:
        RefusedError: an unknown state.
    """
    text = query.pop("state", None)
    default = (
        (*NEEDS_SOMEBODY, "resolved") if query.pop("include_resolved", False) else NEEDS_SOMEBODY
    )
    if text is None:
        return default
    wanted = STATES if text == "all" else text.split(",")
    unknown = [state for state in wanted if state not in STATES]
    if unknown:
        raise RefusedError(f"state: {unknown[0]!r} is not one of {', '.join(STATES)}, all")
    return tuple(state for state in STATES if state in wanted)


def page_answer(
    name: str, rows: list[Any], paging: Paging, next_cursor: str | None
) -> dict[str, Any]:
    """Give a page of rows the form that every list answers."""
    return {
        "ok": True,
        name: rows,
        "count": len(rows),
        "limit": paging.limit,
        "next_cursor": next_cursor,
    }

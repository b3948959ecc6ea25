"""`/me/detector-thresholds`: read, set, reset, look back, and look ahead (wire.md 5)."""

from typing import Any

from flask import Blueprint, Response, request

from detectors import Detector, Knob
from mesedi_server import preview
from mesedi_server.api import bodies
from mesedi_server.api.access import holder, scope
from mesedi_server.api.answers import answer
from mesedi_server.runtime import runtime
from mesedi_server.schemas import thresholds as schema
from mesedi_server.schemas.bodies import load, read_object
from mesedi_server.schemas.group_states import clean
from mesedi_server.store import thresholds
from mesedi_server.store.thresholds import Values

blueprint = Blueprint("thresholds", __name__, url_prefix="/me/detector-thresholds")

TIER = "self_hosted"
"""The reference caps some knobs by tier; here nothing is capped."""


@blueprint.get("/<detector>")
@scope("read")
def get_detector(detector: str) -> Response:
    """Show a detector's knobs, by name, with the values in force."""
    found = schema.detector(detector)
    values = _in_force(found.name)
    shown = [_shown(found, knob, values) for _, knob in sorted(found.knobs.items())]
    return answer(
        _content({"detector": found.name, "version": values.version, "thresholds": shown})
    )


@blueprint.get("/<detector>/<key>")
@scope("read")
def get_threshold(detector: str, key: str) -> Response:
    """Show one knob."""
    knob = schema.knob(detector, key)
    values = _in_force(detector)
    return answer(_content(_shown(schema.detector(detector), knob, values)))


@blueprint.put("/<detector>/<key>")
@scope("admin")
def put_threshold(detector: str, key: str) -> Response:
    """Set a knob, from the next examination on."""
    knob = schema.knob(detector, key)
    given = load(schema.NEW_VALUE, read_object(bodies.read(request)))
    value = schema.checked(knob, given["value"])
    version = _change(detector, key, value, given["reason"])
    content = {"detector": detector, "threshold_key": key, "value": value, "is_default": False}
    return answer(_content({**content, "version": version}))


@blueprint.delete("/<detector>/<key>")
@scope("admin")
def delete_threshold(detector: str, key: str) -> Response:
    """Return a knob to its default; without a value of its own, nothing changes."""
    schema.knob(detector, key)
    if key in _in_force(detector).values:
        _change(detector, key, None, request.args.get("reason"))
    return Response(status=204)


@blueprint.get("/<detector>/<key>/history")
@scope("read")
def get_history(detector: str, key: str) -> Response:
    """List the changes of a knob: who, when, why, and what to; the newest first."""
    schema.knob(detector, key)
    with runtime().database.transaction() as connection:
        changes = thresholds.history(connection, holder().project.pk, detector, key)
    content = {"detector": detector, "threshold_key": key, "history": changes}
    return answer(_content({**content, "count": len(changes)}))


@blueprint.post("/<detector>/preview")
@scope("read")
def post_preview(detector: str) -> Response:
    """Tell what other values would have done to the last days; nothing is changed."""
    schema.detector(detector)
    given = load(schema.PREVIEW_REQUEST, read_object(bodies.read(request)))
    values = {
        key: None if value is None else schema.checked(schema.knob(detector, key), value)
        for key, value in given["values"].items()
    }
    with runtime().database.transaction() as connection:
        seen = preview.of_change(connection, holder().project, detector, values, given["days"])
    return answer({"ok": True, "detector": detector, **preview.content(seen)})


def _in_force(detector: str) -> Values:
    with runtime().database.transaction() as connection:
        return thresholds.in_force(connection, holder().project.pk, detector)


def _change(detector: str, key: str, value: Any, reason: str | None) -> int:
    who = holder()
    with runtime().database.transaction() as connection:
        return thresholds.change(
            connection,
            who.project.pk,
            detector,
            key,
            value,
            changed_by=who.actor,
            reason=clean(reason),
        )


def _shown(detector: Detector, knob: Knob[Any], values: Values) -> dict[str, Any]:
    return {
        "detector": detector.name,
        "threshold_key": knob.name,
        "value_type": knob.value_type,
        "description": knob.description,
        "limits": knob.limits,
        "default": knob.default,
        "value": knob.in_force(values.values),
        "is_default": knob.stored_in(values.values) is None,
    }


def _content(fields: dict[str, Any]) -> dict[str, Any]:
    return {"project_id": holder().project.project_id, "tier": TIER, **fields}

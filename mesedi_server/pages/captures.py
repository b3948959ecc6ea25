"""A group's answers to take away: the dataset that a capture is made of, and what people said of them."""

from flask import Blueprint, Response, request

from mesedi_server import datasets
from mesedi_server.pages.access import Answer, Visit, at_least
from mesedi_server.runtime import runtime
from mesedi_server.schemas import datasets as schema
from mesedi_server.store import failure_groups

blueprint = Blueprint("captures", __name__, url_prefix="/p/<project_id>/groups")

_JSON_LINES = "application/x-ndjson"


@blueprint.get("/<group_id>/dataset")
@at_least("viewer")
def dataset(visit: Visit, group_id: str) -> Answer:
    """Send the dataset, as `GET /failure-groups/{id}/dataset` does."""
    wanted = schema.read(request.args)
    group = failure_groups.get(visit.connection, visit.project.pk, group_id)
    counted = datasets.counts(visit.connection, group, wanted)
    # Written when this request's own transaction is over.
    lines = datasets.lines(runtime().database, visit.project, group, wanted)
    headers = datasets.headers(group, counted)
    return Response(lines, mimetype=_JSON_LINES, headers=headers)


@blueprint.get("/<group_id>/annotations")
@at_least("viewer")
def annotations(visit: Visit, group_id: str) -> Answer:
    """Send what people said, as `GET /failure-groups/{id}/annotations` does."""
    group = failure_groups.get(visit.connection, visit.project.pk, group_id)
    lines = datasets.annotations(runtime().database, visit.project, group)
    name = f'attachment; filename="{group.group_id}-annotations.jsonl"'
    return Response(lines, mimetype=_JSON_LINES, headers={"Content-Disposition": name})

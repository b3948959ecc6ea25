"""`/failure-groups/{id}/dataset` and `/annotations`: a group for evaluators, as JSON lines."""

from flask import Blueprint, Response, request

from mesedi_server import datasets
from mesedi_server.api.access import holder, scope
from mesedi_server.runtime import runtime
from mesedi_server.schemas import datasets as schema
from mesedi_server.store import failure_groups

blueprint = Blueprint("datasets", __name__, url_prefix="/failure-groups")

JSON_LINES = "application/x-ndjson"


@blueprint.get("/<group_id>/dataset")
@scope("read")
def get_dataset(group_id: str) -> Response:
    """Write the group's failing answers and as many passing ones as a dataset."""
    wanted = schema.read(request.args)
    project, database = holder().project, runtime().database
    with database.transaction() as connection:
        group = failure_groups.get(connection, project.pk, group_id)
        counted = datasets.counts(connection, group, wanted)
    lines = datasets.lines(database, project, group, wanted)
    headers = datasets.headers(group, counted)
    return Response(lines, mimetype=JSON_LINES, headers=headers)


@blueprint.get("/<group_id>/annotations")
@scope("read")
def get_annotations(group_id: str) -> Response:
    """Write what people said of the answers that the group's dataset can hold."""
    project, database = holder().project, runtime().database
    with database.transaction() as connection:
        group = failure_groups.get(connection, project.pk, group_id)
    return Response(datasets.annotations(database, project, group), mimetype=JSON_LINES)

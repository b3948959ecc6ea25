"""`/executions/{id}/labels`: what people say of an execution's answers."""

from typing import Any

import msgspec
from flask import Blueprint, Response, request

from mesedi_server.api import bodies, queries
from mesedi_server.api.access import holder, scope
from mesedi_server.api.answers import answer
from mesedi_server.runtime import runtime
from mesedi_server.schemas import labels as schema
from mesedi_server.schemas.bodies import read_object
from mesedi_server.store import executions, labels
from mesedi_server.store.labels import Label

blueprint = Blueprint("labels", __name__, url_prefix="/executions")


@blueprint.post("/<path:execution_id>/labels")
@scope("admin")
def post_label(execution_id: str) -> Response:
    """Label an answer; the last label counts, and the earlier ones stay."""
    values = schema.read(read_object(bodies.read(request)))
    who = holder()
    with runtime().database.transaction() as connection:
        label_id = labels.add(connection, who.project.pk, execution_id, actor=who.actor, **values)
    return answer({"ok": True, "execution_id": execution_id, "label_id": label_id, **values})


@blueprint.get("/<path:execution_id>/labels")
@scope("read")
def list_labels(execution_id: str) -> Response:
    """List what was said of an execution's answers, the newest first."""
    paging = queries.paging(queries.read(queries.PAGE))
    with runtime().database.transaction() as connection:
        execution = executions.get(connection, holder().project.pk, execution_id)
        page = labels.list_page(connection, execution.pk, paging)
    rows = [_shown(label) for label in page.items]
    content = queries.page_answer("labels", rows, paging, page.next_cursor)
    return answer({**content, "execution_id": execution_id})


def _shown(label: Label) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.structs.asdict(label)
    del fields["pk"]
    fields["by"] = fields.pop("person")
    return fields

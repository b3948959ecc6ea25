"""Labels on answers, from the pages that show answers."""

from urllib.parse import unquote

from flask import Blueprint, redirect, request, url_for

from mesedi_server.pages import addresses
from mesedi_server.pages.access import Answer, Visit, at_least
from mesedi_server.schemas import labels as schema
from mesedi_server.store import labels

blueprint = Blueprint("labels", __name__, url_prefix="/p/<project_id>")


@blueprint.post("/labels")
@at_least("member")
def add(visit: Visit) -> Answer:
    """Label an answer, and go back to where it was read."""
    form = request.form
    # Percent-encoded in the form: browsers change the line breaks of what they send.
    execution_id, answer_id = (unquote(form.get(name, "")) for name in ("execution", "answer"))
    values = schema.read(
        {"answer_id": answer_id, "label": form.get("label", ""), "note": form.get("note")}
    )
    labels.add(visit.connection, visit.project.pk, execution_id, actor=visit.actor, **values)
    page = addresses.with_query(_way_back(visit), said="labelled")
    return redirect(f"{page}#{addresses.label_anchor(execution_id, values['answer_id'])}", 303)


def _way_back(visit: Visit) -> str:
    """Return the page that the form came from."""
    project_id = visit.project.project_id
    given = addresses.own_page(request.form.get("back", ""))
    is_own = given is not None and given.startswith(f"/p/{project_id}/")
    return given if given and is_own else url_for("pages.groups.index", project_id=project_id)

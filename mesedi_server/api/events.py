"""`POST /events`: stored before it is answered."""

from flask import Blueprint, Response, request

from mesedi_server.api import bodies
from mesedi_server.api.access import holder, scope
from mesedi_server.api.answers import answer
from mesedi_server.runtime import Runtime, runtime
from mesedi_server.schemas import events as schema
from mesedi_server.store import events
from mesedi_server.store.database import DataRefusedError

blueprint = Blueprint("events", __name__)


@blueprint.post("/events")
@scope("ingest")
def post_events() -> Response:
    """Take a batch: what is good is stored, what is not is told by index and reason."""
    body = bodies.read(request)
    state, project_pk = runtime(), holder().project.pk
    batch = schema.read(body)
    try:
        stored = _store(state, project_pk, batch)
    except DataRefusedError:
        # Something that only PostgreSQL minds. The careful reading leaves nothing of the kind.
        batch = schema.read_carefully(body)
        stored = _store(state, project_pk, batch)
    if stored.is_late:
        state.waker.wake(after_s=state.settings.debounce_s)
    return answer(
        {
            "ok": True,
            "accepted": stored.accepted,
            "rejected": len(batch.refusals),
            "duplicates": batch.repeated + len(batch.rows) - stored.accepted,
            "errors": batch.refusals,
        }
    )


def _store(state: Runtime, project_pk: int, batch: schema.Batch) -> events.Stored:
    if not batch.rows:
        return events.Stored(accepted=0, is_late=False)
    with state.database.statement() as connection:
        return events.store(
            connection,
            project_pk,
            schema.encode_rows(batch.rows),
            settle_s=state.settings.settle_s,
            debounce_s=state.settings.debounce_s,
        )

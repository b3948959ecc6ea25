"""Halts: an open stream a budgeted execution, and the call that ends one (wire.md 1.7)."""

import time
from collections.abc import Iterator

import msgspec
from flask import Blueprint, Response, request

from mesedi_server.api import bodies
from mesedi_server.api.access import holder, scope
from mesedi_server.api.answers import answer
from mesedi_server.errors import UnavailableError
from mesedi_server.runtime import Runtime, runtime
from mesedi_server.schemas import group_states
from mesedi_server.schemas.executions import check_id
from mesedi_server.store import halts
from mesedi_server.store.halts import HaltState

blueprint = Blueprint("halts", __name__)

POLL_S = 0.25
"""How often a stream asks the database; also the time after which a closed execution's stream ends."""
KEEPALIVE_S = 15.0
"""How often a quiet stream says that it is there."""
LONGEST_S = 3600.0
"""When a stream ends whatever happens."""
DELIVERY_WAIT_S = 1.0
"""How long `POST …/halt` waits to hear which streams have passed it on."""
DEFAULT_REASON = "halted by an operator"


@blueprint.get("/executions/<path:execution_id>/halt-stream")
@scope("ingest")
def halt_stream(execution_id: str) -> Response:
    """Stream the halt of an execution, known or not yet; the stream ends when the execution closes."""
    check_id(execution_id)
    state = runtime()
    if not state.halt_slots.acquire(blocking=False):
        raise UnavailableError("all halt streams of this process are in use")
    frames = _frames(state, holder().project.pk, execution_id)
    response = Response(frames, mimetype="text/event-stream")
    response.headers["Cache-Control"] = "no-store"
    # nginx keeps the frames back otherwise, until it has some thousand bytes.
    response.headers["X-Accel-Buffering"] = "no"
    # Also where the client is gone before the first frame, and the generator never starts.
    response.call_on_close(state.halt_slots.release)
    return response


@blueprint.post("/executions/<path:execution_id>/halt")
@scope("admin")
def post_halt(execution_id: str) -> Response:
    """Ask an execution to halt; it is kept, so that a stream that opens later gets it at once."""
    check_id(execution_id)
    reason = group_states.read_reason(bodies.read(request)) or DEFAULT_REASON
    state, who = runtime(), holder()
    with state.database.transaction() as connection:
        pk = halts.request(connection, who.project.pk, execution_id, reason, who.actor)
    return answer({"ok": True, "notified": _delivered(state, pk)})


def _delivered(state: Runtime, execution_pk: int) -> int:
    give_up_at = time.monotonic() + DELIVERY_WAIT_S
    while True:
        with state.database.transaction() as connection:
            delivered = halts.deliveries(connection, execution_pk)
        if delivered or time.monotonic() > give_up_at:
            return delivered
        time.sleep(POLL_S / 2)


def _frames(state: Runtime, project_pk: int, execution_id: str) -> Iterator[bytes]:
    printable = execution_id.replace("\r", " ").replace("\n", " ")
    yield f": subscribed execution={printable}\n\n".encode()
    started = spoken = time.monotonic()
    while time.monotonic() - started < LONGEST_S:
        found = _look(state, project_pk, execution_id)
        if found.reason is not None:
            yield b"event: halt\ndata: " + msgspec.json.encode({"reason": found.reason}) + b"\n\n"
            return
        if found.is_closed:
            return
        if time.monotonic() - spoken >= KEEPALIVE_S:
            spoken = time.monotonic()
            yield b": keepalive\n\n"
        time.sleep(POLL_S)


def _look(state: Runtime, project_pk: int, execution_id: str) -> HaltState:
    try:
        with state.database.transaction() as connection:
            found = halts.state(connection, project_pk, execution_id)
            if found.reason is not None:
                halts.note_delivery(connection, project_pk, execution_id)
    except UnavailableError:
        # The stream lives on: clients don't open another, and the halt would be lost on them.
        return HaltState(None, is_closed=False)
    return found

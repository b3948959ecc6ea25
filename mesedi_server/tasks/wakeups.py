"""The wake-ups that a web process sends, through Celery."""

from celery import Celery

from mesedi_server.tasks.celery_app import ASSESS_DUE, ASSESS_S, EXAMINE_DUE
from mesedi_server.tasks.waking import Waker

EXPIRES_S = 60.0
"""After this time a wake-up that no worker took is dropped: beat has looked many times since."""

PROBE_S = 1.0
"""How long the broker may take to say that it is there; it is asked twice."""


def waker_for(celery: Celery) -> Waker:
    """Make the waker of a process that takes in what is to be examined."""

    def send(after_s: float) -> None:
        celery.send_task(EXAMINE_DUE, countdown=after_s or None, expires=after_s + EXPIRES_S)

    return Waker(send, lambda: _is_reachable(celery))


def assessments_waker_for(celery: Celery) -> Waker:
    """Make the waker of a process that examines: what it has found failing is to be assessed."""

    def send(after_s: float) -> None:
        celery.send_task(ASSESS_DUE, countdown=after_s or None, expires=after_s + ASSESS_S)

    return Waker(send, lambda: _is_reachable(celery))


def _is_reachable(celery: Celery) -> bool:
    try:
        with celery.connection_for_write(
            connect_timeout=PROBE_S, transport_options={"socket_timeout": PROBE_S}
        ) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0)
    except Exception:  # noqa: BLE001 - each transport raises errors of its own
        return False
    return True

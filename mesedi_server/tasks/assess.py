"""Assessing answers, apart from detection: a run is bounded, and makes way when examinations are late."""

import logging
import time

from celery import Celery

from mesedi_server import assessing
from mesedi_server.errors import UnavailableError
from mesedi_server.store import due_work
from mesedi_server.store.database import Database
from mesedi_server.tasks.celery_app import ASSESS_DUE
from mesedi_server.tasks.putting_off import next_time
from mesedi_server.tasks.wakeups import waker_for

logger = logging.getLogger(__name__)

RUN_S = 10.0
"""After this time a run makes way for other tasks; the next one goes on."""
LATE_S = 0.5
"""An examination that has waited so long goes first: the run ends after one transaction."""


def register(celery: Celery, database: Database) -> None:
    """Add the task to a worker's application."""
    waker = waker_for(celery)

    @celery.task(name=ASSESS_DUE)
    def assess_due() -> None:
        with next_time("assessment"):
            assess_all(database, run_s=RUN_S)
            # Scores that came back are due, or the run has made way: an examination wakes the next run.
            if _is_detection_late(database, late_s=0):
                waker.wake()


def assess_all(database: Database, *, run_s: float = RUN_S, late_s: float = LATE_S) -> int:
    """Assess answers, for at most about `run_s` seconds; return how many executions were taken.

    An execution whose answers took more than one transaction counts as often.
    """
    give_up_at = time.monotonic() + run_s
    taken = 0
    while count := _assess_some(database):
        taken += count
        if time.monotonic() >= give_up_at or _is_detection_late(database, late_s):
            break
    return taken


def _assess_some(database: Database) -> int:
    try:
        return assessing.assess_due(database)
    except UnavailableError:
        raise
    except Exception:
        logger.exception("answers could not be assessed; their executions are taken one by one")
        return _assess_singly(database)


def _assess_singly(database: Database) -> int:
    """Take a batch's worth one at a time, so that one that can't be assessed holds up no other."""
    for count in range(assessing.BATCH):
        if not assessing.assess_one(database):
            return count
    return assessing.BATCH


def _is_detection_late(database: Database, late_s: float) -> bool:
    with database.transaction() as connection:
        return due_work.is_behind(connection, late_s=late_s)

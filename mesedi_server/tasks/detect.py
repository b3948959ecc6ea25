"""Detection tasks. Each works until nothing is due; running one twice, or two at once, changes nothing."""

import logging

from celery import Celery
from celery.signals import worker_ready

from mesedi_server import examination, spikes
from mesedi_server.config import Settings
from mesedi_server.errors import UnavailableError
from mesedi_server.store import assessment_work, failure_groups
from mesedi_server.store.database import Database
from mesedi_server.tasks.celery_app import END_IGNORES, EXAMINE_DUE, LOOK_FOR_SPIKES
from mesedi_server.tasks.putting_off import next_time
from mesedi_server.tasks.wakeups import assessments_waker_for

logger = logging.getLogger(__name__)

START_EXPIRES_S = 60.0
"""After this time the look of a starting worker is no longer needed: beat has looked many times since."""

MAX_BATCHES = 50
"""Batches one task examines before it makes way for others; beat or the next wake-up goes on."""


def register(celery: Celery, settings: Settings, database: Database) -> None:
    """Add the tasks to a worker's application."""
    waker = assessments_waker_for(celery)

    @celery.task(name=EXAMINE_DUE)
    def examine_due() -> None:
        with next_time("examination"):
            examine_all(database, settle_s=settings.settle_s)
            with database.transaction() as connection:
                has_answers = assessment_work.is_due(connection)
            if has_answers:
                waker.wake()

    @celery.task(name=END_IGNORES)
    def end_ignores() -> None:
        with next_time("end of ignores"), database.transaction() as connection:
            failure_groups.end_expired_ignores(connection)

    @celery.task(name=LOOK_FOR_SPIKES)
    def look_for_spikes() -> None:
        with next_time("look for spikes"):
            spikes.look_everywhere(database)


def look_at_start(celery: Celery) -> None:
    """Have a worker look for due work once when it starts: beat's first look is seconds away."""

    def look(**_: object) -> None:
        celery.send_task(EXAMINE_DUE, expires=START_EXPIRES_S)

    # Kept by Celery: nothing else refers to it.
    worker_ready.connect(look, weak=False)


def examine_all(database: Database, *, settle_s: float) -> int:
    """Examine what is due, batch by batch, and return how many executions that were."""
    examined = 0
    for _ in range(MAX_BATCHES):
        try:
            count = examination.examine_due(database, settle_s=settle_s)
        except UnavailableError:
            raise
        except Exception:
            logger.exception("a batch could not be examined; its executions are taken one by one")
            count = _examine_singly(database, settle_s=settle_s)
        examined += count
        if not count:
            break
    return examined


def _examine_singly(database: Database, *, settle_s: float) -> int:
    """Examine a batch's worth one at a time, so that one that can't be examined holds up no other."""
    for count in range(examination.BATCH):
        if not examination.examine_one(database, settle_s=settle_s):
            return count
    return examination.BATCH

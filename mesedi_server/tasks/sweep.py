"""Sweeping tasks: what has outlived its time is deleted, a bounded piece at each run."""

import logging
import time

from celery import Celery

from detectors import DETECTORS
from mesedi_server import examination
from mesedi_server.store import judge_calls, people, projects, retention, sign_in_attempts
from mesedi_server.store.database import Database
from mesedi_server.tasks.celery_app import DELETE_OLD, DELETE_OUTDATED
from mesedi_server.tasks.putting_off import next_time

logger = logging.getLogger(__name__)

BATCH = 200
"""Executions that one transaction deletes."""
RUN_S = 10.0
"""After this time a run makes way for examinations; the next one goes on."""

CLASSES = sorted({*examination.CLASSES, *DETECTORS})
"""All failure classes."""


def register(celery: Celery, database: Database) -> None:
    """Add the tasks to a worker's application."""

    @celery.task(name=DELETE_OLD)
    def delete_old() -> None:
        with next_time("deletion of old executions"):
            delete_old_executions(database, run_s=RUN_S)

    @celery.task(name=DELETE_OUTDATED)
    def delete_outdated() -> None:
        with next_time("deletion of outdated sessions"), database.transaction() as connection:
            people.delete_expired(connection)
            sign_in_attempts.delete_outdated(connection)


def delete_old_executions(database: Database, *, run_s: float) -> int:
    """Delete what projects do not keep any longer, for at most about `run_s` seconds; return how many executions."""
    give_up_at = time.monotonic() + run_s
    with database.transaction() as connection:
        pks = retention.projects_that_forget(connection)
    return sum(_delete_of(database, pk, give_up_at) for pk in pks)


def _delete_of(database: Database, project_pk: int, give_up_at: float) -> int:
    deleted = 0
    while time.monotonic() < give_up_at:
        with database.transaction() as connection:
            # Read again for each batch: who switches retention off means at once.
            project = projects.get(connection, project_pk)
            count = retention.delete_old(connection, project, CLASSES, limit=BATCH)
            if project.retention_days is not None:
                judge_calls.forget_old(connection, project_pk, days=project.retention_days)
        deleted += count
        if count < BATCH:
            break
    if deleted:
        logger.info("project %s: %s executions were too old to keep", project_pk, deleted)
    return deleted

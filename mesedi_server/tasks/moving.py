"""Counts of projects that have changed their zone, moved to its days, a bounded piece at each run."""

import logging
import time

from celery import Celery

from mesedi_server.store import moving_days
from mesedi_server.store.database import Database
from mesedi_server.tasks.celery_app import MOVE_DAYS
from mesedi_server.tasks.putting_off import next_time

logger = logging.getLogger(__name__)

STEP = 10_000
"""Executions that one transaction moves; what the project sends is examined in between."""
RUN_S = 10.0
"""After this time a run makes way for examinations; the next one goes on."""


def register(celery: Celery, database: Database) -> None:
    """Add the task to a worker's application."""

    @celery.task(name=MOVE_DAYS)
    def move_days() -> None:
        with next_time("counting by the days of another zone"):
            move_all(database, run_s=RUN_S)


def move_all(database: Database, *, run_s: float, step: int = STEP) -> None:
    """Move the counts of all projects whose zone has changed, for at most about `run_s` seconds."""
    give_up_at = time.monotonic() + run_s
    with database.transaction() as connection:
        pks = moving_days.projects_that_move(connection)
    for pk in pks:
        _move(database, pk, give_up_at, step)


def _move(database: Database, project_pk: int, give_up_at: float, step: int) -> None:
    while time.monotonic() < give_up_at:
        with database.transaction() as connection:
            has_more = moving_days.move(connection, project_pk, limit=step)
        if not has_more:
            logger.info("project %s is counted by the days of its new zone", project_pk)
            break

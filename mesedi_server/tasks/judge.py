"""The task that asks judges; running it twice, or two at once, asks nothing twice."""

from collections.abc import Callable

from celery import Celery

from mesedi_server import judging
from mesedi_server.config import Settings
from mesedi_server.judging import Rules
from mesedi_server.store.database import Database
from mesedi_server.tasks.celery_app import ASK_JUDGES
from mesedi_server.tasks.putting_off import next_time


def register(
    celery: Celery, settings: Settings, database: Database, must_stop: Callable[[], bool]
) -> None:
    """Add the task to a judge worker's application; `must_stop` tells that the worker is to end."""
    rules = Rules(secret_key=settings.secret_key, private_judges=settings.private_judges)

    @celery.task(name=ASK_JUDGES)
    def ask_judges() -> None:
        with next_time("asking judges"):
            judging.judge_all(database, rules, must_stop=must_stop)

"""The kinds of process that production runs: web, worker, and judge worker where a project has a judge."""

import logging
import threading
import warnings

from celery import Celery, signals
from celery.exceptions import SecurityWarning
from granian import Granian
from granian.constants import Interfaces
from granian.log import LogLevels

from mesedi_server import slots
from mesedi_server.config import Settings
from mesedi_server.store.database import Database
from mesedi_server.tasks import assess, celery_app, detect, judge, moving, sweep

STOP_S = 5
"""How long a web process that stops waits for its open requests; halt streams never end by themselves."""


def web(settings: Settings, host: str, port: int) -> None:
    """Answer requests until told to stop."""
    Granian(
        "mesedi_server.app:create_served_app",
        factory=True,
        interface=Interfaces.WSGI,
        address=host,
        port=port,
        workers=settings.web_workers,
        blocking_threads=settings.web_threads + slots.WAITING,
        workers_kill_timeout=STOP_S,
        websockets=False,
        log_level=LogLevels.error,
    ).serve()


def worker(settings: Settings) -> None:
    """Examine what is due until told to stop; beat runs along."""
    database = Database(settings.database_url, connections=1, patient=True)
    celery = celery_app.create(settings)
    detect.register(celery, settings, database)
    assess.register(celery, database)
    sweep.register(celery, database)
    moving.register(celery, database)
    detect.look_at_start(celery)
    _work(celery, f"--concurrency={settings.worker_processes}")


def judge_worker(settings: Settings) -> None:
    """Ask judges until told to stop, then only wait for those that have been asked; beat runs along."""
    database = Database(settings.database_url, connections=1, patient=True)
    celery = celery_app.create(settings, celery_app.JUDGE_QUEUE, celery_app.JUDGE_BEAT)
    stop = threading.Event()

    def on_stop(**_: object) -> None:
        stop.set()

    signals.worker_shutting_down.connect(on_stop, weak=False)
    judge.register(celery, settings, database, stop.is_set)
    # A thread, since the task has threads of its own and waits: the signal to stop must reach its process.
    _work(celery, "--pool=threads", "--concurrency=1")


def _work(celery: Celery, *options: str) -> None:
    # Celery's worry about root is pickle, which is switched off here.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("celery").setLevel(logging.WARNING)
    celery.worker_main(
        [
            "--quiet",
            "worker",
            "--loglevel=WARNING",
            *options,
            "--without-gossip",
            "--without-mingle",
            # Beat keeps its clock in memory: its tasks are all "every few seconds".
            "--beat",
            "--scheduler=celery.beat:Scheduler",
        ]
    )

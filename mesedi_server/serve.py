"""The two kinds of process that production runs: web and worker."""

import logging
import warnings

from celery.exceptions import SecurityWarning
from granian import Granian
from granian.constants import Interfaces
from granian.log import LogLevels

from mesedi_server.config import Settings
from mesedi_server.store.database import Database
from mesedi_server.tasks import assess, celery_app, detect, moving, sweep

STOP_S = 5
"""How long a web process that stops waits for its open requests; halt streams never end by themselves."""


def web(settings: Settings, host: str, port: int) -> None:
    """Answer requests until told to stop."""
    Granian(
        "mesedi_server.gateway:create",
        factory=True,
        interface=Interfaces.RSGI,
        address=host,
        port=port,
        workers=settings.web_workers,
        workers_kill_timeout=STOP_S,
        websockets=False,
        log_level=LogLevels.error,
    ).serve()


def worker(settings: Settings) -> None:
    """Examine what is due until told to stop; beat runs along."""
    # Celery's worry about root is pickle, which is switched off here.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("celery").setLevel(logging.WARNING)
    database = Database(settings.database_url, connections=1, patient=True)
    celery = celery_app.create(settings)
    detect.register(celery, settings, database)
    assess.register(celery, database)
    sweep.register(celery, database)
    moving.register(celery, database)
    detect.look_at_start(celery)
    celery.worker_main(
        [
            "--quiet",
            "worker",
            "--loglevel=WARNING",
            f"--concurrency={settings.worker_processes}",
            "--without-gossip",
            "--without-mingle",
            # Beat keeps its clock in memory: its tasks are all "every few seconds".
            "--beat",
            "--scheduler=celery.beat:Scheduler",
        ]
    )

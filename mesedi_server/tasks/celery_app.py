"""The Celery application: its tasks, its queue, and what beat starts by itself."""

from typing import TypeAlias

from celery import Celery

from mesedi_server.config import Settings

SWEEP_S = 5.0
"""How often beat looks for due work that a lost wake-up left."""
ASSESS_S = 5.0
"""How often beat looks for answers that are to be assessed."""
IGNORES_S = 30.0
"""How often expired ignores are ended."""
SPIKES_S = 30.0
"""How often projects are looked at whose window slides on without new events."""

DELETE_S = 60.0
"""How often executions are looked for that their project does not keep any longer."""
MOVE_S = 5.0
"""How often projects are looked for whose zone has changed."""
OUTDATED_S = 600.0
"""How often sessions, sign-in links and attempts that are over are deleted."""

ASK_S = 2.0
"""How often the beat of judge workers looks for answers that wait for a judge."""

QUEUE = "mesedi"
JUDGE_QUEUE = "mesedi-judges"
"""Queue of the judge workers alone: a slow judge holds up nothing else."""
EXAMINE_DUE = "mesedi.examine_due"
ASSESS_DUE = "mesedi.assess_due"
END_IGNORES = "mesedi.end_ignores"
LOOK_FOR_SPIKES = "mesedi.look_for_spikes"
DELETE_OLD = "mesedi.delete_old_executions"
DELETE_OUTDATED = "mesedi.delete_outdated"
MOVE_DAYS = "mesedi.move_days"
ASK_JUDGES = "mesedi.ask_judges"


Schedule: TypeAlias = tuple[tuple[str, float, float], ...]
"""A task, how often beat starts it, and after how long one that no worker took is dropped; in seconds."""

BEAT: Schedule = (
    (EXAMINE_DUE, SWEEP_S, SWEEP_S * 2),
    (ASSESS_DUE, ASSESS_S, ASSESS_S),
    (END_IGNORES, IGNORES_S, IGNORES_S),
    (LOOK_FOR_SPIKES, SPIKES_S, SPIKES_S),
    (DELETE_OLD, DELETE_S, DELETE_S),
    (DELETE_OUTDATED, OUTDATED_S, OUTDATED_S),
    (MOVE_DAYS, MOVE_S, MOVE_S),
)
JUDGE_BEAT: Schedule = ((ASK_JUDGES, ASK_S, ASK_S),)
"""Only judge workers start what only they take: without any, nothing piles up."""


def create(settings: Settings, queue: str = QUEUE, beat: Schedule = BEAT) -> Celery:
    """Make the application of one kind of worker; it connects when it is first used."""
    celery = Celery("mesedi", broker=settings.broker_url, set_as_current=False)
    celery.conf.update(
        task_default_queue=queue,
        task_ignore_result=True,
        task_store_errors_even_if_ignored=False,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        task_publish_retry=False,
        broker_connection_timeout=2,
        broker_connection_retry_on_startup=True,
        broker_transport_options={"socket_timeout": 5, "socket_connect_timeout": 2},
        beat_schedule={
            task: {"task": task, "schedule": every_s, "options": {"expires": expires_s}}
            for task, every_s, expires_s in beat
        },
    )
    return celery
